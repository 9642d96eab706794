"""``POST /v1/journeys``: what comes next, the rest, and the outcomes of journeys that go on."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request
from fastapi.responses import JSONResponse

from regard.serve.answering import JourneysKey
from regard.serve.problems import Problem
from regard.serve.routes.errors import ERRORS
from regard.serve.schemas import JourneysRequest, JourneysResponse
from regard.serve.service import Service, service_of

__all__ = ["router"]

router = APIRouter(prefix="/v1", tags=["models"])


@router.post("/journeys", responses={200: {"model": JourneysResponse}, **ERRORS}, response_class=JSONResponse)
async def journeys(
    body: JourneysRequest, request: Request, service: Annotated[Service, Depends(service_of)]
) -> JSONResponse:
    """Foretell journeys, in order; the answers are those of `regard journeys predict`."""
    limits = service.settings
    service.check_count(len(body.cases), "cases")
    for place, case in enumerate(body.cases):
        if len(case.events) > limits.max_events:
            raise Problem(
                422,
                "too_many_events",
                f"cases.{place}.events has {len(case.events):,} items, the limit is {limits.max_events:,}; send "
                "the newest",
                field=f"cases.{place}.events",
            )
    if body.draws > limits.max_draws:
        raise Problem(
            422,
            "over_limit",
            f"draws is {body.draws:,}, the limit is {limits.max_draws:,}",
            field="draws",
        )
    served = service.catalogue.journeys(body.model)
    given = served.check_cases(body.cases)
    key = JourneysKey(served.name, body.draws, body.explain)
    answers = await service.answers(request, key, given)
    found = [{"id": case.id, **answer} for case, answer in zip(body.cases, answers, strict=True)]
    return JSONResponse({"model": served.name, "journeys": found})
