"""What the server counts, for Prometheus, and the line it logs for each request."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["Metrics", "MetricsMiddleware"]

_log = logging.getLogger("regard.serve")
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Metrics:
    """Counters of one server, in a registry of their own."""

    def __init__(self) -> None:
        registry = self.registry = CollectorRegistry()
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=registry)
        self.requests = Counter(
            "regard_requests", "Requests answered.", ["route", "status"], registry=registry
        )
        self.seconds = Histogram(
            "regard_request_seconds",
            "From the request to its answer.",
            ["route"],
            buckets=_SECONDS,
            registry=registry,
        )
        self.inputs = Counter("regard_inputs", "Inputs answered.", registry=registry)
        self.abandoned = Counter(
            "regard_inputs_dropped", "Inputs dropped because nobody waited any more.", registry=registry
        )
        self.batch_size = Histogram(
            "regard_batch_size", "Inputs answered together.", buckets=_SIZES, registry=registry
        )
        self.batch_seconds = Histogram(
            "regard_batch_seconds", "Time of a batch.", buckets=_SECONDS, registry=registry
        )
        self.waiting = Gauge("regard_queue_inputs", "Inputs waiting.", registry=registry)

    def batch(self, size: int, seconds: float) -> None:
        """Count an answered batch."""
        self.inputs.inc(size)
        self.batch_size.observe(size)
        self.batch_seconds.observe(seconds)

    def dropped(self, n_inputs: int) -> None:
        """Count inputs that left the queue unanswered."""
        self.abandoned.inc(n_inputs)

    def watch_queue(self, size: Callable[[], int]) -> None:
        """Read the size of the queue whenever metrics are asked for."""
        self.waiting.set_function(size)

    def text(self) -> bytes:
        """All metrics in Prometheus's text format."""
        return generate_latest(self.registry)


class MetricsMiddleware:
    """Counts and logs each request: method, route, status and time, nothing of what was sent."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app, self.metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on and note how it ended."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started, status = time.perf_counter(), 500

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, noting)
        finally:
            # The route and not the path: a path is the client's text, and there are endless ones.
            route = getattr(scope.get("route"), "path", None) or "other"
            seconds = time.perf_counter() - started
            self.metrics.requests.labels(route, str(status)).inc()
            self.metrics.seconds.labels(route).observe(seconds)
            _log.info("%s %s %d %.0f ms", scope["method"], route, status, 1000 * seconds)
