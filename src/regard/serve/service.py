"""What the routes share: models, limits and the queue; and how a request waits for its answer."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from fastapi import Request

from regard.serve.answering import make_answerer
from regard.serve.batching import Abandoned, MicroBatcher, Ticket
from regard.serve.catalogue import Catalogue
from regard.serve.metrics import Metrics
from regard.serve.problems import Problem
from regard.serve.settings import ServeSettings

__all__ = ["Service", "service_of"]


class Service:
    """One server's models, limits, queue and counters.

    Args:
        catalogue: The models.
        settings: The limits.
    """

    def __init__(self, catalogue: Catalogue, settings: ServeSettings) -> None:
        self.catalogue, self.settings, self.metrics = catalogue, settings, Metrics()
        self.batcher = MicroBatcher(
            make_answerer(catalogue),
            batch_size=settings.batch_size,
            max_wait=settings.batch_wait / 1000,
            capacity=settings.queue,
            observer=self.metrics,
        )
        self.metrics.watch_queue(lambda: self.batcher.n_waiting)

    def check_texts(self, texts: Sequence[str], item: str) -> None:
        """Refuse too many texts, and too long ones.

        Args:
            texts: The texts.
            item: What errors call one of them, such as ``inputs.{}`` with its place.

        Raises:
            Problem: What is over which limit.
        """
        limits = self.settings
        self.check_count(len(texts), item.partition(".")[0])
        for place, text in enumerate(texts):
            if len(text) > limits.max_input_length:
                raise Problem(
                    422,
                    "input_too_long",
                    f"{item.format(place)} has {len(text):,} characters, the limit is "
                    f"{limits.max_input_length:,}; shorten or divide it",
                    field=item.format(place),
                )

    def check_count(self, n: int, field: str) -> None:
        """Refuse too many inputs in one request.

        Raises:
            Problem: How many there are, and the limit.
        """
        limit = self.settings.max_inputs
        if n > limit:
            raise Problem(
                413,
                "too_many_inputs",
                f"{field} has {n:,} items, the limit is {limit:,}; send them in several requests",
                field=field,
            )

    def check_options(self, name: str, options: tuple[tuple[str, Any], ...]) -> None:
        """Refuse settings of the decoding that are over a limit or do not fit the model.

        Raises:
            Problem: What does not fit.
        """
        given = dict(options)
        most = {"beam": self.settings.max_beam, "max_len": self.settings.max_output_length}
        for field, limit in most.items():
            if given.get(field, 0) > limit:
                raise Problem(
                    422, "over_limit", f"{field} is {given[field]:,}, the limit is {limit:,}", field=field
                )
        self.catalogue.check_decoding(name, options)

    def submit(
        self, key: Hashable, inputs: Sequence[Any], *, watch: Callable[[int, Any], None] | None = None
    ) -> Ticket:
        """Queue inputs; see `MicroBatcher.submit`."""
        return self.batcher.submit(key, inputs, watch=watch)

    async def answers(self, request: Request, key: Hashable, inputs: Sequence[Any]) -> list[Any]:
        """Queue inputs and wait for their answers, as long as the client does and the limit allows.

        Raises:
            QueueFull, QueueClosed: They were not taken.
            Problem: Too late.
            Abandoned: The client has gone.
        """
        ticket = self.submit(key, inputs)
        answered = asyncio.wrap_future(ticket.future)
        gone = asyncio.ensure_future(_until_gone(request))
        try:
            waiting: set[asyncio.Future[Any]] = {answered, gone}
            await asyncio.wait(waiting, timeout=self.settings.timeout, return_when=asyncio.FIRST_COMPLETED)
            if answered.done():
                return answered.result()
            if gone.done():
                raise Abandoned("the client has gone")
            raise self.too_late()
        finally:
            gone.cancel()
            if not answered.done():
                answered.cancel()
                self.batcher.cancel(ticket)

    def too_late(self) -> Problem:
        """The problem of a request that took too long."""
        return Problem(
            504,
            "timeout",
            f"no answer within {self.settings.timeout:g} s; send fewer or shorter inputs, or try again later",
        )

    def close(self) -> None:
        """Finish what is queued and stop."""
        self.batcher.close()


async def _until_gone(request: Request) -> None:
    """Return when the client has closed the connection; the body must have been read."""
    with contextlib.suppress(asyncio.CancelledError):
        while (await request.receive())["type"] != "http.disconnect":
            pass


async def service_of(request: Request) -> Service:
    """The service of the application that a request went to.

    Not a plain function: FastAPI would send each call of one through its pool of threads.
    """
    service = request.app.state.service
    assert isinstance(service, Service)
    return service
