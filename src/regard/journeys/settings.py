"""Settings of a model of journeys and of its training."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, ValidationError, field_validator, model_validator

from regard.config import Settings, TrainingSettings
from regard.errors import ConfigError, did_you_mean
from regard.registry import SCORES

__all__ = ["JourneyConfig", "JourneyModelSettings", "JourneyTrainingSettings", "make_journey_config"]

JOURNEY_VERSION = 1


class JourneyModelSettings(Settings):
    """The encoder of events, the decoder of what follows, and the pooling for outcomes."""

    encoder: Literal["lstm", "attention"] = "lstm"
    """How events become states: an LSTM, or self-attention with positions and time gaps."""
    hidden_size: int = Field(default=128, ge=2)
    """Units of the encoder, the decoder and the pooling."""
    embedding_size: int = Field(default=32, ge=2)
    """Width of the embeddings of activities."""
    layers: int = Field(default=1, ge=1)
    """Layers of the encoder."""
    heads: int = Field(default=4, ge=1)
    """Heads of the self-attention encoder."""
    dropout: float = Field(default=0.2, ge=0, lt=1)
    """Share of units dropped."""
    score: str = "general"
    """Score of the decoder's attention."""
    outcome_values: Literal["events", "states"] = "events"
    """What the pooling for an outcome sums: the events themselves, so that the weights say which ones decided,
    or the encoder's states, each of which may hold what came before."""
    max_events: int = Field(default=200, ge=2)
    """Events of a journey that are read; of a longer one the newest."""

    @field_validator("score")
    @classmethod
    def _known_score(cls, value: str) -> str:
        return SCORES.check(value)

    @model_validator(mode="after")
    def _combination(self) -> JourneyModelSettings:
        if self.encoder == "attention" and self.hidden_size % self.heads:
            raise ValueError(f"hidden_size {self.hidden_size} cannot be shared among {self.heads} heads")
        return self


class JourneyTrainingSettings(Settings):
    """How a model of journeys is trained."""

    minutes: float = Field(default=5.0, ge=0)
    """Most minutes of training, 0 for no limit."""
    epochs: int = Field(default=40, ge=1)
    """Most passes over the cases."""
    batch_events: int = Field(default=768, ge=1)
    """Events in a batch, with padding."""
    prefixes: int = Field(default=4, ge=1)
    """Prefixes of a case whose whole rest is learnt at each pass; what follows next is learnt at all."""
    learning_rate: float = Field(default=3e-3, gt=0)
    """Highest learning rate."""
    weight_decay: float = Field(default=1e-2, ge=0)
    """Weight decay of AdamW."""
    clip_norm: float = Field(default=1.0, gt=0)
    """Largest norm of the gradient."""
    average_decay: float = Field(default=0.995, ge=0, lt=1)
    """Decay of the running average of the weights, which is what is kept."""
    event_dropout: float = Field(default=0.1, ge=0, lt=1)
    """Share of events left out at random, so that the model knows journeys without one of their events; with the
    same share an event's attributes are hidden."""
    dev_fraction: float = Field(default=0.1, gt=0, lt=0.5)
    """Share of the cases that the best epoch is chosen by."""
    patience: int = Field(default=8, ge=0)
    """Validations without gain before the training stops; 0 never stops early."""
    device: str = "auto"
    """Device: auto, cpu, cuda, cuda:1, mps."""
    threads: int = Field(default=0, ge=0)
    """Threads of the processor, 0 for all cores."""
    seed: int = Field(default=1, ge=0)
    """Seed of everything random."""

    def optimiser_settings(self) -> TrainingSettings:
        """The settings that optimiser and schedule go by."""
        return TrainingSettings(
            learning_rate=self.learning_rate,
            weight_decay=self.weight_decay,
            clip_norm=self.clip_norm,
            average_decay=self.average_decay,
            schedule="cosine",
            warmup_steps=50,
        )


class JourneyConfig(Settings):
    """All settings of a model of journeys."""

    version: int = JOURNEY_VERSION
    """Version of this format."""
    model: JourneyModelSettings = JourneyModelSettings()
    """The model."""
    training: JourneyTrainingSettings = JourneyTrainingSettings()
    """The training."""

    @model_validator(mode="after")
    def _known_version(self) -> JourneyConfig:
        if self.version != JOURNEY_VERSION:
            raise ValueError(
                f"the format is version {self.version}, this regard reads {JOURNEY_VERSION}: train again"
            )
        return self


def make_journey_config(settings: dict[str, Any] | None = None, *, origin: str = "settings") -> JourneyConfig:
    """Make a configuration from nested settings.

    Raises:
        ConfigError: Unknown names and wrong values, all in one message.
    """
    try:
        return JourneyConfig.model_validate(settings or {})
    except ValidationError as error:
        lines = []
        for item in error.errors():
            name = ".".join(str(part) for part in item["loc"])
            message = item["msg"].removeprefix("Value error, ")
            if item["type"] == "extra_forbidden":
                kinds: dict[str, type[Settings]] = {
                    "model": JourneyModelSettings,
                    "training": JourneyTrainingSettings,
                }
                allowed = kinds.get(str(item["loc"][0]), JourneyConfig).model_fields
                message = f"no such setting{did_you_mean(str(item['loc'][-1]), allowed)}"
            lines.append(f"{name}: {message}" if name else message)
        raise ConfigError(f"{origin}: " + "; ".join(lines)) from None
