"""The interface of LibreTranslate, so that its clients can use a model between two languages.

``/translate``, ``/languages``, ``/detect`` and ``/frontend/settings``. Files and suggestions are not taken, nor
is the format ``html``: tags would be read as text.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from fastapi.responses import JSONResponse

from regard.serve.answering import PredictKey
from regard.serve.catalogue import ServedModel
from regard.serve.forms import DetectRequest, TranslateRequest, documented, read_body
from regard.serve.guards import check_key, key_of
from regard.serve.languages import detect_language, language_name, model_between
from regard.serve.problems import Problem
from regard.serve.routes.errors import ERRORS
from regard.serve.schemas import ErrorBody
from regard.serve.service import Service, service_of

__all__ = ["router"]

router = APIRouter(tags=["LibreTranslate"])

_Service = Annotated[Service, Depends(service_of)]


_WRONG_TYPE = {"model": ErrorBody, "description": "The body is neither JSON nor a form."}


def _object(description: str, kind: str = "object") -> dict[int | str, dict[str, Any]]:
    schema = {"type": kind}
    return {
        200: {"description": description, "content": {"application/json": {"schema": schema}}},
        **ERRORS,
        415: _WRONG_TYPE,
    }


@router.post(
    "/translate",
    responses=_object("`translatedText`, `alternatives` and, with `auto`, `detectedLanguage`."),
    openapi_extra=documented(TranslateRequest),
    response_class=JSONResponse,
)
async def translate(request: Request, service: _Service) -> JSONResponse:
    """Translate a text, or a list of texts, line by line."""
    body = await read_body(request, TranslateRequest)
    check_key(service.settings.api_key, body.api_key or key_of(request.headers))
    texts = [body.q] if isinstance(body.q, str) else body.q
    item = "q" if isinstance(body.q, str) else "q.{}"
    service.check_texts(texts, item)
    made: dict[str, Any] = {}
    source = body.source
    if source == "auto":
        found = detect_language(service.catalogue, "\n".join(texts))[0]
        made["detectedLanguage"], source = found, found["language"]
    served = model_between(service.catalogue, source, body.target)
    n_alternatives = min(body.alternatives, served.model.config.decoding.beam - 1)
    translated = await _translate(request, service, served, texts, n_alternatives)
    one = isinstance(body.q, str)
    made["translatedText"] = translated[0][0] if one else [outputs[0] for outputs in translated]
    if body.alternatives:
        others = [outputs[1:] for outputs in translated]
        made["alternatives"] = others[0] if one else others
    return JSONResponse(made)


async def _translate(
    request: Request, service: Service, served: ServedModel, texts: list[str], n_alternatives: int
) -> list[list[str]]:
    """Outputs of each text, best first; its lines are separate inputs and stay in their places."""
    lines = [text.split("\n") for text in texts]
    inputs = [line for text in lines for line in text]
    if len(inputs) > service.settings.max_inputs:
        raise Problem(
            413,
            "too_many_inputs",
            f"q has {len(inputs):,} lines, the limit is {service.settings.max_inputs:,}; send them in several "
            "requests",
            field="q",
        )
    served.check_sources(inputs, "q")
    options = (("nbest", n_alternatives + 1),) if n_alternatives else ()
    answers = iter(await service.answers(request, PredictKey(served.name, options), inputs))
    made = []
    for text in lines:
        found = [next(answers) for _ in text]
        ranked = [[other.text for other in line.alternatives] or [line.text] for line in found]
        n_outputs = max(len(outputs) for outputs in ranked)
        made.append(
            [
                "\n".join(outputs[min(rank, len(outputs) - 1)] for outputs in ranked)
                for rank in range(n_outputs)
            ]
        )
    return made


@router.get("/languages", responses=_object("Languages and what they can be translated to.", "array"))
async def languages(service: _Service) -> JSONResponse:
    """List the languages that models are between."""
    targets: dict[str, list[str]] = {}
    for served in service.catalogue:
        if served.languages:
            source, target = served.languages
            targets.setdefault(source, [])
            targets.setdefault(target, [])
            if target not in targets[source]:
                targets[source].append(target)
    return JSONResponse(
        [{"code": code, "name": language_name(code), "targets": found} for code, found in targets.items()]
    )


@router.post(
    "/detect",
    responses=_object("Languages, the likeliest first, each with a confidence up to 100.", "array"),
    openapi_extra=documented(DetectRequest),
    response_class=JSONResponse,
)
async def detect(request: Request, service: _Service) -> JSONResponse:
    """Tell the language of a text among those that models translate from.

    The confidence is the share of the text's tokens that the model's vocabulary has.
    """
    body = await read_body(request, DetectRequest)
    check_key(service.settings.api_key, body.api_key or key_of(request.headers))
    service.check_texts([body.q], "q")
    return JSONResponse(detect_language(service.catalogue, body.q))


@router.get("/frontend/settings", responses=_object("What LibreTranslate's own page asks for."))
async def frontend_settings(service: _Service) -> JSONResponse:
    """Limits and the languages to begin with."""
    pairs = [served.languages for served in service.catalogue if served.languages]
    source, target = pairs[0] if pairs else ("", "")
    return JSONResponse(
        {
            "apiKeys": service.settings.api_key is not None,
            "keyRequired": service.settings.api_key is not None,
            "charLimit": service.settings.max_input_length,
            "filesTranslation": False,
            "frontendTimeout": 500,
            "language": {
                "source": {"code": source, "name": language_name(source)},
                "target": {"code": target, "name": language_name(target)},
            },
            "suggestions": False,
            "supportedFilesFormat": [],
        }
    )
