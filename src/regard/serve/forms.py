"""Bodies that come as JSON or as a form, as LibreTranslate's clients send them."""

from __future__ import annotations

import json
from typing import Any, Literal, TypeVar
from urllib.parse import parse_qs

from fastapi import Request
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.datastructures import UploadFile

from regard.serve.problems import Problem, explain_validation
from regard.serve.schemas import Text

__all__ = ["DetectRequest", "TranslateRequest", "documented", "read_body"]


class _Form(BaseModel):
    # Forms know text only, so numbers may come as text; other fields are other servers' and do no harm.
    model_config = ConfigDict(extra="ignore", allow_inf_nan=False)

    api_key: str | None = None


class TranslateRequest(_Form):
    """What ``/translate`` takes."""

    q: Text | list[Text] = Field(description="A text, or several.")
    source: str = Field(max_length=40, description="Code of its language, or `auto`.")
    target: str = Field(max_length=40, description="Code of the language to translate to.")
    format: Literal["text"] = Field(default="text", description="Only `text`.")
    alternatives: int = Field(default=0, ge=0, le=100, description="Further translations wanted.")


class DetectRequest(_Form):
    """What ``/detect`` takes."""

    q: Text = Field(description="The text.")


Form = TypeVar("Form", bound=_Form)


def documented(model: type[BaseModel]) -> dict[str, Any]:
    """The description of a body that may come in three ways."""
    schema = model.model_json_schema()
    kinds = ("application/json", "application/x-www-form-urlencoded", "multipart/form-data")
    return {"requestBody": {"required": True, "content": {kind: {"schema": schema} for kind in kinds}}}


async def read_body(request: Request, model: type[Form]) -> Form:
    """Read a JSON object or a form.

    Raises:
        Problem: It is neither, or a field is wrong.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "application/x-www-form-urlencoded":
        values = _read_pairs(await request.body())
    elif kind == "multipart/form-data":
        values = await _read_multipart(request)
    elif kind == "application/json" or kind.endswith("+json"):
        values = _read_json(await request.body())
    else:
        raise Problem(
            415,
            "content_type",
            "the body must be JSON (Content-Type: application/json) or a form "
            "(application/x-www-form-urlencoded)",
        )
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise explain_validation(list(error.errors()), model) from None


def _read_pairs(body: bytes) -> dict[str, Any]:
    """Read ``name=value&…``; text that is not percent-encoded, as curl sends it, is UTF-8 too."""
    try:
        pairs = parse_qs(body.decode("utf-8"), keep_blank_values=True, max_num_fields=1000, errors="strict")
    except ValueError as error:
        raise Problem(400, "bad_body", f"the form cannot be read as UTF-8 text ({error})") from None
    return {name: found[0] if len(found) == 1 else found for name, found in pairs.items()}


async def _read_multipart(request: Request) -> dict[str, Any]:
    async with request.form() as form:
        values: dict[str, Any] = {}
        for name in form:
            found = form.getlist(name)
            if any(isinstance(value, UploadFile) for value in found):
                raise Problem(400, "file", f"the field {name[:40]} is a file; send its text", field=name[:40])
            values[name] = found[0] if len(found) == 1 else found
        return values


def _read_json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        reason = getattr(error, "msg", "it is not UTF-8 text, or is nested too deeply")
        place = f" at character {error.pos}" if isinstance(error, json.JSONDecodeError) else ""
        raise Problem(400, "not_json", f"the body is not JSON: {reason}{place}") from None
