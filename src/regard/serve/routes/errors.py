"""The errors that every route can answer with, for the description of the interface."""

from __future__ import annotations

from typing import Any

from regard.serve.schemas import ErrorBody

__all__ = ["ERRORS"]

ERRORS: dict[int | str, dict[str, Any]] = {
    400: {"model": ErrorBody, "description": "The body cannot be read."},
    401: {"model": ErrorBody, "description": "The API key is missing or another one."},
    404: {"model": ErrorBody, "description": "There is no such model."},
    405: {"model": ErrorBody, "description": "The path takes another method."},
    408: {"model": ErrorBody, "description": "The body came too slowly."},
    413: {"model": ErrorBody, "description": "The body is too large, or has too many inputs."},
    422: {"model": ErrorBody, "description": "A field is wrong."},
    503: {"model": ErrorBody, "description": "The queue is full; see Retry-After."},
    504: {"model": ErrorBody, "description": "No answer in time."},
}
