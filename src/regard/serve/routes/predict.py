"""``POST /v1/predict``: sources in, outputs out, all at once or step by step."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse

from regard.serve.answering import PredictKey
from regard.serve.routes.errors import ERRORS
from regard.serve.schemas import PredictRequest, PredictResponse
from regard.serve.service import Service, service_of
from regard.serve.stream import event_stream

__all__ = ["router"]

router = APIRouter(prefix="/v1", tags=["models"])

_EVENT = {
    "type": "object",
    "properties": {
        "event": {"enum": ["step", "prediction", "done", "error"]},
        "data": {"type": "string", "contentMediaType": "application/json"},
    },
    "required": ["event", "data"],
}
_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "model": PredictResponse,
        "description": "The outputs; with `stream`, events.",
        "content": {"text/event-stream": {"schema": _EVENT}},
    },
    **ERRORS,
}


@router.post("/predict", responses=_RESPONSES, response_class=JSONResponse)
async def predict(
    body: PredictRequest, request: Request, service: Annotated[Service, Depends(service_of)]
) -> Response:
    """Answer sources, in order; the answers are those of `regard predict`."""
    served = service.catalogue.get(body.model)
    options = body.options()
    service.check_texts(body.inputs, "inputs.{}")
    service.check_options(served.name, options)
    served.check_sources(body.inputs, "inputs.{}")
    key = PredictKey(served.name, options)
    if body.stream:
        events = event_stream(service, key, body.inputs, attention=body.attention)
        return StreamingResponse(
            events, media_type="text/event-stream", headers={"Cache-Control": "no-store"}
        )
    answers = await service.answers(request, key, body.inputs)
    found = [prediction.to_json(attention=body.attention) for prediction in answers]
    return JSONResponse({"model": served.name, "predictions": found})
