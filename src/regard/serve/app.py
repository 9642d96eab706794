"""The application, put together."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware

import regard
from regard.serve.catalogue import Catalogue
from regard.serve.description import describe
from regard.serve.guards import BodyLimit, KeyGuard, SafeHeaders
from regard.serve.metrics import MetricsMiddleware
from regard.serve.problems import FaultGuard, add_handlers
from regard.serve.routes import explain, health, journeys, libretranslate, models, page, predict, score
from regard.serve.service import Service
from regard.serve.settings import ServeSettings

__all__ = ["create_app"]


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    yield
    await run_in_threadpool(app.state.service.close)


def create_app(catalogue: Catalogue, settings: ServeSettings) -> FastAPI:
    """Make the application that serves models.

    Args:
        catalogue: The models.
        settings: The limits.
    """
    service = Service(catalogue, settings)
    app = FastAPI(
        title="regard",
        version=regard.__version__,
        summary="Attentional sequence-to-sequence models: predict, score, explain; and journeys.",
        docs_url=None,
        redoc_url=None,
        lifespan=_lifespan,
        middleware=[
            Middleware(MetricsMiddleware, metrics=service.metrics),
            Middleware(SafeHeaders),
            Middleware(FaultGuard),
            Middleware(KeyGuard, key=settings.api_key, guarded=("/v1/", "/metrics")),
            Middleware(BodyLimit, max_body=settings.max_body, timeout=settings.timeout),
        ],
    )
    app.state.service = service
    add_handlers(app)
    for routes in (predict, score, explain, journeys, models, libretranslate, health, page):
        app.include_router(routes.router)
    page.mount_files(app)
    describe(app, settings)
    return app
