"""The limits of the server, each with its meaning."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from regard.errors import ConfigError

__all__ = ["KEY_VARIABLE", "ServeSettings", "make_settings"]

KEY_VARIABLE = "REGARD_API_KEY"
"""The environment variable that holds the key; a key on the command line could be seen by others."""


class ServeSettings(BaseModel):
    """How much the server takes on, and how it groups what arrives together."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_input_length: int = Field(default=2_000, ge=1)
    """Longest input (and target to score) in characters."""
    max_inputs: int = Field(default=256, ge=1)
    """Most inputs in one request."""
    max_body: int = Field(default=1_000_000, ge=100)
    """Largest request body in bytes."""
    max_beam: int = Field(default=20, ge=1)
    """Widest beam that a request may ask for."""
    max_output_length: int = Field(default=1_000, ge=1)
    """Largest `max_len` that a request may ask for, in tokens."""
    max_events: int = Field(default=1_000, ge=1)
    """Most events of a journey in a request."""
    max_draws: int = Field(default=200, ge=0)
    """Most rests that a request may have drawn for each journey."""
    queue: int = Field(default=2_048, ge=1)
    """Most inputs that wait at a time; above, requests get 503."""
    timeout: float = Field(default=30.0, gt=0)
    """Seconds after which a request gets 504."""
    batch_size: int = Field(default=64, ge=1)
    """Most inputs decoded together."""
    batch_wait: float = Field(default=5.0, ge=0)
    """Most milliseconds that an input waits for others to be decoded with."""
    api_key: str | None = Field(default=None, repr=False)
    """What requests must show, or None for no check."""

    @model_validator(mode="after")
    def _fits(self) -> ServeSettings:
        if self.max_inputs > self.queue:
            raise ValueError(
                f"max_inputs {self.max_inputs} is more than queue {self.queue}: such a request could never "
                "be taken; raise queue"
            )
        if self.api_key is not None and (len(self.api_key) < 8 or not self.api_key.isascii()):
            raise ValueError(f"{KEY_VARIABLE} needs at least 8 characters, all of them ASCII")
        return self


def make_settings(**values: object) -> ServeSettings:
    """Check settings.

    Raises:
        ConfigError: What does not fit, all of it, in one line.
    """
    try:
        return ServeSettings.model_validate(values)
    except ValidationError as error:
        parts = []
        for wrong in error.errors():
            name = ".".join(str(part) for part in wrong["loc"]).replace("_", "-")
            message = wrong["msg"].removeprefix("Value error, ")
            parts.append(f"--{name}: {message}" if name else message)
        raise ConfigError("; ".join(parts)) from None
