"""``POST /v1/explain``: what happened in a decoding, for the player of the page."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from fastapi.responses import JSONResponse

from regard.serve.answering import ExplainKey
from regard.serve.problems import Problem
from regard.serve.routes.errors import ERRORS
from regard.serve.schemas import ExplainRequest
from regard.serve.service import Service, service_of

__all__ = ["router"]

router = APIRouter(prefix="/v1", tags=["models"])

_RECORD: dict[str, Any] = {
    "description": "The record of the decoding, of the schema regard-decoding/1.",
    "content": {"application/json": {"schema": {"type": "object"}}},
}


@router.post("/explain", responses={200: _RECORD, **ERRORS}, response_class=JSONResponse)
async def explain(
    body: ExplainRequest, request: Request, service: Annotated[Service, Depends(service_of)]
) -> JSONResponse:
    """Decode one source and return each step: scores, weights, context, candidates, for each hypothesis."""
    served = service.catalogue.get(body.model)
    options = body.options()
    if not body.input.strip():
        raise Problem(422, "blank", "input is blank; send a text to explain", field="input")
    service.check_texts([body.input], "input")
    service.check_texts([body.target or ""], "target")
    service.check_options(served.name, options)
    served.check_sources([body.input], "input")
    answers = await service.answers(request, ExplainKey(served.name, options), [(body.input, body.target)])
    return JSONResponse(answers[0])
