"""What a request can do wrong, as JSON that says what to change.

Every error of the interface has the same body: ``error`` (one sentence), ``code`` (for programs) and, where one
field is to blame, ``field``. LibreTranslate's clients look for ``error`` too.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Sequence
from typing import Any, get_args

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from regard.errors import RegardError, did_you_mean
from regard.serve.batching import Abandoned, QueueClosed, QueueFull

__all__ = ["FaultGuard", "Problem", "add_handlers", "explain_validation", "problem_response"]

_log = logging.getLogger("regard.serve")


class Problem(Exception):
    """A request that cannot be answered.

    Args:
        status: HTTP status.
        code: A short name for programs.
        message: What was found, what is allowed, what to do.
        field: The field to blame, such as ``inputs.3``.
        headers: Further headers of the answer.
    """

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        field: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.field = status, code, message, field
        self.headers = headers or {}

    def body(self) -> dict[str, str]:
        """The JSON object of the answer."""
        made = {"error": self.message, "code": self.code}
        if self.field is not None:
            made["field"] = self.field
        # The name of an unknown field comes from outside, and may hold half a surrogate pair.
        return {name: text.encode("utf-8", "replace").decode("utf-8") for name, text in made.items()}


def problem_response(problem: Problem) -> JSONResponse:
    """The answer to a request that cannot be answered."""
    return JSONResponse(problem.body(), status_code=problem.status, headers=problem.headers)


def from_exception(error: Exception) -> Problem:
    """The problem that an exception of the queue or of the model means."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, QueueFull):
        seconds = max(1, round(error.retry_after))
        return Problem(
            503,
            "queue_full",
            f"too many inputs are waiting; try again in {seconds} s",
            headers={"Retry-After": str(seconds)},
        )
    if isinstance(error, QueueClosed):
        return Problem(
            503, "shutting_down", "the server is shutting down; try again", headers={"Retry-After": "5"}
        )
    if isinstance(error, Abandoned):
        return Problem(499, "client_gone", "the client has closed the connection")
    if isinstance(error, RegardError):
        return Problem(422, "unfit", str(error))
    # Only where, never what: the message of an exception may hold the input.
    where = "".join(traceback.format_tb(error.__traceback__))
    _log.error("%s while answering a request\n%s", type(error).__name__, where)
    return Problem(500, "fault", "a fault of the server; its log says where")


def explain_validation(errors: list[Any], model: Any) -> Problem:
    """Put all that is wrong with a body into one problem.

    Args:
        errors: Of pydantic.
        model: What the body should have been, for the names that are allowed; None if that is not known.
    """
    if errors[0]["type"] == "json_invalid":
        reason = errors[0].get("ctx", {}).get("error", "cannot be parsed")
        at = errors[0]["loc"][-1]
        return Problem(400, "not_json", f"the body is not JSON: {reason} at character {at}")
    parts, first = [], None
    for wrong in errors[:5]:
        place = ".".join(str(part) for part in wrong["loc"] if part != "body")
        first = first or place
        message = wrong["msg"].removeprefix("Value error, ")
        if wrong["type"] == "extra_forbidden":
            name, fields = str(wrong["loc"][-1])[:40], _fields_at(model, wrong["loc"])
            message = f"unknown field; the fields are {', '.join(fields)}{did_you_mean(name, fields)}"
        elif not place and wrong["type"] in ("missing", "model_attributes_type"):
            message = "the body must be a JSON object, sent as Content-Type: application/json"
        parts.append(f"{place[:80]}: {message}" if place else message)
    if len(errors) > 5:
        parts.append(f"and {len(errors) - 5} more")
    return Problem(422, "invalid", "; ".join(parts), field=first[:80] if first else None)


def _fields_at(model: Any, place: Sequence[Any]) -> list[str]:
    """The names that are allowed beside the last part of a place in a body."""
    for part in place[:-1]:
        field = getattr(model, "model_fields", {}).get(part)
        if field is not None:
            model = field.annotation
            while get_args(model):  # the items of a list
                model = get_args(model)[0]
    return sorted(getattr(model, "model_fields", {}))


def _body_of(request: Request) -> Any:
    """The model of the body of the route that a request went to."""
    field = getattr(request.scope.get("route"), "body_field", None)
    return getattr(getattr(field, "field_info", None), "annotation", None)


def _http_problem(request: Request, error: HTTPException) -> Problem:
    method, path = request.method, request.url.path
    headers = dict(error.headers or {})
    if error.status_code == 404:
        known = list(request.app.openapi()["paths"])
        hint = did_you_mean(path, known) or "; /docs lists what there is"
        return Problem(404, "not_found", f"there is nothing at this path{hint}")
    if error.status_code == 405:
        allowed = headers.get("Allow") or headers.get("allow", "another method")
        return Problem(
            405, "wrong_method", f"this path does not take {method}; use {allowed}", headers=headers
        )
    code = "bad_body" if error.status_code == 400 else "http"
    return Problem(error.status_code, code, str(error.detail), headers=headers)


def add_handlers(app: FastAPI) -> None:
    """Answer every kind of error of an application in the same form."""

    async def on_validation(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RequestValidationError)
        return problem_response(explain_validation(list(error.errors()), _body_of(request)))

    async def on_http(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, HTTPException)
        return problem_response(_http_problem(request, error))

    async def on_other(request: Request, error: Exception) -> JSONResponse:
        return problem_response(from_exception(error))

    app.add_exception_handler(RequestValidationError, on_validation)
    app.add_exception_handler(HTTPException, on_http)
    for kind in (Problem, QueueFull, QueueClosed, Abandoned, RegardError):
        app.add_exception_handler(kind, on_other)


class FaultGuard:
    """Answers what nothing else has caught, and logs where it happened but not what was sent."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        started = False

        async def noting(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self.app(scope, receive, noting)
        except Exception as error:
            problem = from_exception(error)
            if scope["type"] == "http" and not started:
                await problem_response(problem)(scope, receive, send)
