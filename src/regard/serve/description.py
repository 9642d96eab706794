"""The OpenAPI description, with this server's own limits in it."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

from regard.serve.settings import ServeSettings

__all__ = ["describe"]


def describe(app: FastAPI, settings: ServeSettings) -> None:
    """Put the limits and the key into the description that the application gives of itself."""
    make = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            _limit(make(), settings)
        assert app.openapi_schema is not None
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


def _limit(description: dict[str, Any], settings: ServeSettings) -> None:
    schemas = description["components"]["schemas"]
    text = {"maxLength": settings.max_input_length}
    for name in ("PredictRequest", "ExplainRequest"):
        for field, most in (("beam", settings.max_beam), ("max_len", settings.max_output_length)):
            schemas[name]["properties"][field]["anyOf"][0]["maximum"] = most
    schemas["PredictRequest"]["properties"]["nbest"]["anyOf"][0]["maximum"] = settings.max_beam
    inputs = schemas["PredictRequest"]["properties"]["inputs"]
    inputs["maxItems"] = schemas["ScoreRequest"]["properties"]["pairs"]["maxItems"] = settings.max_inputs
    inputs["items"].update(text)
    schemas["ExplainRequest"]["properties"]["input"].update(text)
    for field in ("source", "target"):
        schemas["PairBody"]["properties"][field].update(text)
    schemas["JourneysRequest"]["properties"]["cases"]["maxItems"] = settings.max_inputs
    schemas["JourneysRequest"]["properties"]["draws"]["maximum"] = settings.max_draws
    # Not as maxItems: so many events of so many cases are over the limit of the body.
    schemas["JourneyCase"]["properties"]["events"]["description"] += f" At most {settings.max_events:,}."
    # FastAPI's own form of a validation error is never sent.
    schemas.pop("HTTPValidationError", None)
    schemas.pop("ValidationError", None)
    if settings.api_key is not None:
        description["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
        for path, operations in description["paths"].items():
            if path.startswith(("/v1/", "/metrics")):
                for operation in operations.values():
                    operation["security"] = [{"key": []}]
