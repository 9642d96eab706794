"""The steps of a decoding as server-sent events."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Hashable, Sequence
from typing import Any

import numpy as np

from regard.prediction import PartialOutput
from regard.serve.problems import from_exception
from regard.serve.service import Service

__all__ = ["event_stream"]


def _event(name: str, values: dict[str, Any]) -> str:
    return f"event: {name}\ndata: {json.dumps(values, ensure_ascii=False, allow_nan=False)}\n\n"


def _step(place: int, step: PartialOutput, *, attention: bool) -> str:
    made: dict[str, Any] = {
        "input": place,
        "step": step.position,
        "token": step.token,
        "text": step.text,
        "log_prob": round(step.log_prob, 6),
    }
    if attention and step.weights is not None:
        made["attention"] = np.round(step.weights.astype(float), 5).tolist()
    return _event("step", made)


def event_stream(
    service: Service, key: Hashable, inputs: Sequence[str], *, attention: bool
) -> AsyncIterator[str]:
    """Queue inputs and return the events of their decoding.

    Raises:
        QueueFull, QueueClosed: They were not taken; raised here, before an answer begins.
    """
    loop = asyncio.get_running_loop()
    events: asyncio.Queue[str | None] = asyncio.Queue()

    def watch(place: int, step: PartialOutput) -> None:
        loop.call_soon_threadsafe(events.put_nowait, _step(place, step, attention=attention))

    ticket = service.submit(key, inputs, watch=watch)
    ticket.future.add_done_callback(lambda _: loop.call_soon_threadsafe(events.put_nowait, None))

    async def follow() -> AsyncIterator[str]:
        deadline = time.monotonic() + service.settings.timeout
        try:
            while True:
                left = deadline - time.monotonic()
                event = await asyncio.wait_for(events.get(), max(0.0, left))
                if event is None:
                    break
                yield event
            for place, prediction in enumerate(ticket.future.result()):
                yield _event("prediction", {"input": place, **prediction.to_json(attention=attention)})
            yield _event("done", {"predictions": len(inputs)})
        except asyncio.TimeoutError:
            yield _event("error", service.too_late().body())
        except Exception as error:
            yield _event("error", from_exception(error).body())
        finally:
            service.batcher.cancel(ticket)

    return follow()
