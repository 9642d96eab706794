"""``POST /v1/score``: the probability of given targets."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request
from fastapi.responses import JSONResponse

from regard.serve.answering import ScoreKey
from regard.serve.routes.errors import ERRORS
from regard.serve.schemas import ScoreRequest, ScoreResponse
from regard.serve.service import Service, service_of

__all__ = ["router"]

router = APIRouter(prefix="/v1", tags=["models"])


@router.post("/score", responses={200: {"model": ScoreResponse}, **ERRORS}, response_class=JSONResponse)
async def score(
    body: ScoreRequest, request: Request, service: Annotated[Service, Depends(service_of)]
) -> JSONResponse:
    """Score targets: the log-probability with which decoding would have given them."""
    served = service.catalogue.get(body.model)
    sources, targets = [pair.source for pair in body.pairs], [pair.target for pair in body.pairs]
    service.check_texts(sources, "pairs.{}.source")
    service.check_texts(targets, "pairs.{}.target")
    served.check_sources(sources, "pairs.{}.source")
    answers = await service.answers(request, ScoreKey(served.name), list(zip(sources, targets, strict=True)))
    found = [prediction.to_json(attention=body.attention) for prediction in answers]
    return JSONResponse({"model": served.name, "scores": found})
