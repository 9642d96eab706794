"""The bodies of requests and answers."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

__all__ = [
    "ErrorBody",
    "ExplainRequest",
    "JourneyCase",
    "JourneyEvent",
    "JourneysRequest",
    "JourneysResponse",
    "ModelList",
    "PredictRequest",
    "PredictResponse",
    "ScoreRequest",
    "ScoreResponse",
    "Text",
]


def _is_text(text: str) -> str:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError(
            f"character {error.start} is half of a surrogate pair and no text; send whole characters"
        ) from None
    return text


Text = Annotated[str, AfterValidator(_is_text)]
"""Text that can be written as UTF-8; JSON can hold halves of surrogate pairs, which cannot."""


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    model: str | None = Field(default=None, description="Name of a model; the server's first one if absent.")


class _Decoding(_Request):
    beam: int | None = Field(
        default=None,
        ge=1,
        description="Hypotheses kept at each step; 1 is greedy; the model's own if absent.",
    )
    length_penalty: float | None = Field(
        default=None, ge=0, le=10, description="Exponent of the length normalisation."
    )
    coverage_penalty: float | None = Field(
        default=None, ge=0, le=10, description="Factor of the coverage penalty."
    )
    max_len: int | None = Field(default=None, ge=1, description="Longest output in tokens.")

    def options(self) -> tuple[tuple[str, Any], ...]:
        """The settings of the decoding that were given, as sorted pairs."""
        names = ("beam", "coverage_penalty", "length_penalty", "max_len", "nbest", "copy_unknown")
        given = {name: getattr(self, name, None) for name in names}
        return tuple(sorted((name, value) for name, value in given.items() if value is not None))


class PredictRequest(_Decoding):
    """Sources to be answered."""

    inputs: list[Text] = Field(
        min_length=1, description="Sources; a blank one gets a blank output.", examples=[["2026年12月1日"]]
    )
    nbest: int | None = Field(default=None, ge=1, description="Hypotheses returned; at most the beam.")
    copy_unknown: bool | None = Field(
        default=None, description="Replace unknown output tokens by the source they attend to."
    )
    attention: bool = Field(default=False, description="Return tokens and attention weights too.")
    stream: bool = Field(
        default=False,
        description="Answer with server-sent events: `step` for each step of the search, `prediction` for each "
        "input, `done` at the end; `error` if something fails.",
    )


class PredictedBody(BaseModel):
    """What a model answers for one source; see `regard.Prediction`."""

    source: str
    text: str
    score: float = Field(description="Log-probability of the output, its end counted.")
    normalised: float = Field(description="What hypotheses are ranked by.")
    unknown: list[str] | None = Field(default=None, description="Source tokens that the vocabulary lacks.")
    finished: bool | None = Field(default=None, description="False if the output was cut at its limit.")
    note: str | None = None
    source_tokens: list[str] | None = None
    target_tokens: list[str] | None = None
    attention: list[list[float]] | None = Field(
        default=None, description="Weights (target tokens, source tokens); null for a fixed context."
    )
    alternatives: list[PredictedBody] | None = Field(default=None, description="The n-best list, best first.")


class PredictResponse(BaseModel):
    """Answers in the order of the inputs."""

    model: str
    predictions: list[PredictedBody]


class PairBody(BaseModel):
    """A source and a target to be scored."""

    model_config = ConfigDict(extra="forbid", strict=True)

    source: Text
    target: Text


class ScoreRequest(_Request):
    """Pairs to be scored."""

    pairs: list[PairBody] = Field(
        min_length=1, examples=[[{"source": "2026年12月1日", "target": "December 1, 2026"}]]
    )
    attention: bool = Field(default=False, description="Return tokens and attention weights too.")


class ScoreResponse(BaseModel):
    """Scores in the order of the pairs: `score` is the log-probability of the target."""

    model: str
    scores: list[PredictedBody]


class ExplainRequest(_Decoding):
    """A source whose decoding is to be shown."""

    input: Text = Field(description="The source.", examples=["2026年12月1日"])
    target: Text | None = Field(
        default=None, description="Explain this target instead of the model's own outputs."
    )


class JourneyEvent(BaseModel):
    """What happened, and when."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    activity: Text
    time: str | int = Field(
        description="ISO 8601, with or without a zone (then UTC), or milliseconds since 1970 UTC."
    )
    attributes: dict[Text, Text | int | float | None] = Field(
        default={}, description="Further columns that the model knows (see `GET /v1/models`), by name."
    )


class JourneyCase(BaseModel):
    """A journey as far as it is known."""

    model_config = ConfigDict(extra="forbid", strict=True)

    id: Text | None = Field(default=None, description="Given back with the answer.")
    events: list[JourneyEvent] = Field(min_length=1, description="In the order of time.")


class JourneysRequest(_Request):
    """Journeys to be foretold."""

    cases: list[JourneyCase] = Field(
        min_length=1,
        examples=[
            [{"id": "A7", "events": [{"activity": "application submitted", "time": "2026-12-01T09:30:00"}]}]
        ],
    )
    draws: int = Field(
        default=24,
        ge=0,
        description="Rests drawn to name the one most like all; 0 for the likeliest activity at each step.",
    )
    explain: bool = Field(default=False, description="Return how much each event was attended to.")


class NextBody(BaseModel):
    """An activity that may come next; the end of the journey is `(end)`."""

    activity: str
    probability: float


class OutcomeBody(BaseModel):
    """An outcome and its probability."""

    outcome: str
    probability: float
    weights: list[float] | None = Field(default=None, description="Attention to each event.")


class ForetoldBody(BaseModel):
    """What is foretold of one journey."""

    id: str | None
    n_events: int
    next: list[NextBody] = Field(description="The likeliest first.")
    rest: list[str] = Field(description="The rest most like all that were drawn.")
    expected_similarity: float | None = Field(description="Of the rest to what comes; null without draws.")
    outcomes: list[OutcomeBody]
    next_weights: list[float] | None = Field(default=None, description="Attention to each event.")


class JourneysResponse(BaseModel):
    """Answers in the order of the cases."""

    model: str
    journeys: list[ForetoldBody]


class ModelBody(BaseModel):
    """A model of the server."""

    name: str
    context: str
    attention: bool
    heads: int
    beam: int
    max_source_tokens: int
    source_tokens: str
    target_tokens: str
    parameters: int
    source_language: str | None
    target_language: str | None
    trained_on: str | None
    version: str


class LimitsBody(BaseModel):
    """What a request may ask for."""

    max_input_length: int
    max_inputs: int
    max_beam: int
    max_output_length: int
    max_events: int
    max_draws: int


class JourneyModelBody(BaseModel):
    """A model of journeys, and what it knows."""

    name: str
    activities: list[str]
    categories: list[str]
    numbers: list[str]
    outcomes: list[str]
    max_events_read: int
    parameters: int
    version: str


class ModelList(BaseModel):
    """The models of each kind; the first is the one that is used when none is named."""

    models: list[ModelBody]
    journeys: list[JourneyModelBody]
    limits: LimitsBody
    key_needed: bool


class ErrorBody(BaseModel):
    """What was wrong, and what to change."""

    error: str
    code: str
    field: str | None = None
