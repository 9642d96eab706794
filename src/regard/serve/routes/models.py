"""``GET /v1/models``: what can be asked, and within which limits."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends
from fastapi.responses import JSONResponse

from regard.serve.routes.errors import ERRORS
from regard.serve.schemas import ModelList
from regard.serve.service import Service, service_of

__all__ = ["router"]

router = APIRouter(prefix="/v1", tags=["models"])


@router.get("/models", responses={200: {"model": ModelList}, 401: ERRORS[401]}, response_class=JSONResponse)
async def models(service: Annotated[Service, Depends(service_of)]) -> JSONResponse:
    """List the models; the first is the one that is used when none is named."""
    limits = service.settings
    return JSONResponse(
        {
            "models": [served.describe() for served in service.catalogue],
            "journeys": [served.describe() for served in service.catalogue.all_journeys],
            "limits": limits.model_dump(
                include={
                    "max_input_length",
                    "max_inputs",
                    "max_beam",
                    "max_output_length",
                    "max_events",
                    "max_draws",
                }
            ),
            "key_needed": limits.api_key is not None,
        }
    )
