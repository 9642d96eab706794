"""``/healthz``, ``/readyz`` and ``/metrics``, for what watches the server."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends
from fastapi.responses import JSONResponse, Response
from prometheus_client import CONTENT_TYPE_LATEST

from regard.serve.problems import Problem
from regard.serve.routes.errors import ERRORS
from regard.serve.service import Service, service_of

__all__ = ["router"]

router = APIRouter(tags=["operation"])

_STATUS: dict[str, Any] = {
    "content": {
        "application/json": {
            "schema": {"type": "object", "properties": {"status": {"type": "string"}}, "required": ["status"]}
        }
    }
}


@router.get("/healthz", responses={200: _STATUS}, response_class=JSONResponse)
async def healthz() -> JSONResponse:
    """The process lives."""
    return JSONResponse({"status": "ok"})


@router.get("/readyz", responses={200: _STATUS, 503: ERRORS[503]}, response_class=JSONResponse)
async def readyz(service: Annotated[Service, Depends(service_of)]) -> JSONResponse:
    """New requests would be taken."""
    if not service.batcher.is_open:
        raise Problem(503, "shutting_down", "the server is shutting down; ask another one")
    if service.batcher.n_waiting >= service.settings.queue:
        raise Problem(503, "queue_full", "the queue is full; try again", headers={"Retry-After": "1"})
    return JSONResponse({"status": "ready"})


@router.get(
    "/metrics",
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}, 401: ERRORS[401]},
    response_class=Response,
)
async def metrics(service: Annotated[Service, Depends(service_of)]) -> Response:
    """Counters in Prometheus's text format."""
    return Response(service.metrics.text(), media_type=CONTENT_TYPE_LATEST)
