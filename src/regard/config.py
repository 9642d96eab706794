"""Every setting, typed and checked, in one place: YAML or keyword arguments in, JSON out.

A setting's docstring is its documentation and the help text of the command line. All mistakes of a
configuration are reported together, each with the setting's name and what is allowed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from regard.errors import ConfigError, did_you_mean
from regard.registry import CELLS, METRICS, NORMALISERS, SCORES

__all__ = [
    "PRESETS",
    "AttentionSettings",
    "Config",
    "DataSettings",
    "DecodingSettings",
    "ModelSettings",
    "SideSettings",
    "TrainingSettings",
    "load_config",
    "load_settings_file",
    "make_config",
    "merge",
]

CONFIG_VERSION = 1

TokenizerName = Literal["auto", "char", "grapheme", "space", "word", "bpe", "unigram"]
NormalForm = Literal["auto", "NFC", "NFD", "NFKC", "NFKD", "none"]


class Settings(BaseModel):
    """A group of settings: unknown names are refused, values do not change once read."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class SideSettings(Settings):
    """How one side of the pairs, source or target, becomes tokens."""

    tokenizer: TokenizerName = "auto"
    """How text is split: auto (looks at the data), char, grapheme, space, word, bpe or unigram."""
    vocabulary_size: int = Field(default=4000, ge=16)
    """Most entries of the vocabulary; for bpe and unigram the size that is trained for."""
    min_frequency: int = Field(default=1, ge=1)
    """Symbols seen less often in training are unknown (char, grapheme, space, word)."""
    normal_form: NormalForm = "auto"
    """Unicode normal form; auto is NFC, or NFD where that at least halves a large inventory (hangul)."""
    lowercase: bool = False
    """Lower-case the text before it is split."""


class DataSettings(Settings):
    """How files are read and which pairs are used."""

    source: SideSettings = SideSettings()
    """The source side."""
    target: SideSettings = SideSettings()
    """The target side."""
    source_column: int | None = Field(default=None, ge=1)
    """Column of the source in a tab-separated file, counted from 1; without it the file has two columns,
    source and target."""
    target_column: int | None = Field(default=None, ge=1)
    """Column of the target in a tab-separated file, counted from 1; likewise."""
    source_field: str = "source"
    """Name of the source in a JSON line."""
    target_field: str = "target"
    """Name of the target in a JSON line."""
    encoding: str = "utf-8"
    """Encoding of the text files; a UTF-8 byte order mark is tolerated."""
    max_source_len: int = Field(default=500, ge=1)
    """Longest source in tokens; longer pairs are left out of training, and counted."""
    max_target_len: int = Field(default=500, ge=1)
    """Longest target in tokens; longer pairs are left out of training, and counted."""
    dev_fraction: float = Field(default=0.05, gt=0, lt=0.5)
    """Share of the pairs held out when no dev file is given (at most 1,000 pairs)."""


class AttentionSettings(Settings):
    """Attention: scores, then weights, then the weighted sum of the values."""

    score: str = "general"
    """Scoring function: dot, scaled_dot, general, additive, location or cosine."""
    heads: int = Field(default=1, ge=1)
    """Number of heads; each has its own projections of query, key and value."""
    window: Literal["global", "local_m", "local_p"] = "global"
    """What a step may look at: everything, or a window around its own position or a predicted one."""
    window_size: int = Field(default=5, ge=1)
    """Half width D of a local window, in source tokens (Luong 2015, section 3.2)."""
    normaliser: str = "softmax"
    """From scores to weights: softmax, sparsemax or entmax15."""
    size: int | None = Field(default=None, ge=1)
    """Width of the additive score's hidden layer; by default the decoder's hidden size."""

    @field_validator("score")
    @classmethod
    def _known_score(cls, value: str) -> str:
        return SCORES.check(value)

    @field_validator("normaliser")
    @classmethod
    def _known_normaliser(cls, value: str) -> str:
        return NORMALISERS.check(value)


class ModelSettings(Settings):
    """The encoder, what the decoder sees of it, and the decoder."""

    cell: str = "lstm"
    """Recurrent cell: rnn (tanh), gru or lstm."""
    hidden_size: int = Field(default=256, ge=1)
    """Units of a decoder layer and of an encoder layer (both directions together)."""
    embedding_size: int = Field(default=128, ge=1)
    """Width of the embeddings."""
    encoder_layers: int = Field(default=1, ge=1)
    """Layers of the encoder."""
    decoder_layers: int = Field(default=1, ge=1)
    """Layers of the decoder."""
    bidirectional: bool = True
    """Whether the encoder reads in both directions."""
    residual: bool = False
    """Add each recurrent layer's input to its output, from the second layer on."""
    dropout: float = Field(default=0.3, ge=0, lt=1)
    """Share of units dropped from embeddings, between layers and before the output."""
    context: Literal["last", "projected", "pooled", "attention"] = "attention"
    """What the decoder sees of the source: one fixed vector (last state, a transform of it, a transform
    of all states) or a fresh one at each step by attention."""
    pool: Literal["mean", "max", "query"] = "mean"
    """How `pooled` makes one vector of all states."""
    context_every_step: bool = False
    """Feed a fixed context to the decoder at each step (Cho 2014), not only as its first state."""
    bridge: Literal["linear", "copy"] = "linear"
    """How the decoder gets its first state: a learned layer, or the encoder's own final states."""
    reverse_source: bool = False
    """Read the source backwards (Sutskever 2014)."""
    attention: AttentionSettings = AttentionSettings()
    """Settings of the attention."""
    input_feeding: bool = False
    """Feed the attentional state back as input at the next step (Luong 2015, section 3.3); slower."""
    attend_before_cell: bool = False
    """Attend with the previous state and feed the context into the cell (Bahdanau 2015); slower."""
    tie_embeddings: bool = False
    """Use the target embeddings as the output layer's weights."""

    @field_validator("cell")
    @classmethod
    def _known_cell(cls, value: str) -> str:
        return CELLS.check(value)

    @model_validator(mode="after")
    def _combination(self) -> ModelSettings:
        wrong = list(self._impossible())
        if wrong:
            raise ValueError("; ".join(wrong))
        return self

    def _impossible(self) -> list[str]:
        """List every combination that cannot work, each with its reason."""
        wrong = []
        attention = self.attention
        if self.bidirectional and self.hidden_size % 2:
            wrong.append(
                f"hidden_size {self.hidden_size} is odd, but a bidirectional encoder halves it: take an even one"
            )
        if self.context != "attention":
            wrong.extend(
                f"{name} needs context: attention, but context is {self.context}"
                for name in ("input_feeding", "attend_before_cell")
                if getattr(self, name)
            )
            if attention != AttentionSettings():
                wrong.append(f"attention settings have no effect when context is {self.context}: remove them")
        elif self.context_every_step:
            wrong.append(
                "context_every_step is for a fixed context; attention gives a fresh one each step anyway"
            )
        if self.pool != "mean" and self.context != "pooled":
            wrong.append(f"pool: {self.pool} needs context: pooled, but context is {self.context}")
        if self.input_feeding and self.attend_before_cell:
            wrong.append("input_feeding and attend_before_cell are two ways to do one thing: choose one")
        if self.bridge == "copy":
            if self.context == "pooled":
                wrong.append(
                    "bridge: copy hands over the encoder's last state, but context: pooled replaces it"
                )
            if self.encoder_layers != self.decoder_layers:
                wrong.append(
                    f"bridge: copy needs as many encoder layers ({self.encoder_layers}) as decoder layers "
                    f"({self.decoder_layers})"
                )
        if self.hidden_size % attention.heads:
            wrong.append(f"hidden_size {self.hidden_size} cannot be shared among {attention.heads} heads")
        if attention.score == "location" and attention.window != "global":
            wrong.append(
                "score: location gives weights to absolute positions, so a local window has nothing to narrow"
            )
        if self.tie_embeddings and self.embedding_size != self.hidden_size:
            wrong.append(
                f"tie_embeddings needs embedding_size ({self.embedding_size}) equal to hidden_size "
                f"({self.hidden_size})"
            )
        return wrong


class TrainingSettings(Settings):
    """How the model is trained."""

    batch_size: int = Field(default=32, ge=1)
    """Size of a batch, in `batch_unit`."""
    batch_unit: Literal["sentences", "tokens"] = "sentences"
    """What `batch_size` counts: pairs, or target tokens with padding."""
    epochs: int = Field(default=25, ge=1)
    """Most passes over the training data."""
    max_steps: int | None = Field(default=None, ge=1)
    """Most updates; the smallest of epochs, max_steps and minutes ends the training."""
    minutes: float = Field(default=10.0, ge=0)
    """Most minutes of training, 0 for no limit. The updates that fit are planned once, from the speed
    measured in the first updates, and written down, so that the schedule can end where the training does."""
    learning_rate: float = Field(default=4e-3, gt=0)
    """Highest learning rate."""
    schedule: Literal["cosine", "inverse_sqrt", "plateau", "constant"] = "cosine"
    """How the learning rate changes after the warm-up."""
    warmup_steps: int = Field(default=100, ge=0)
    """Updates over which the learning rate rises to its highest."""
    plateau_patience: int = Field(default=2, ge=0)
    """Validations without gain before `plateau` halves the learning rate."""
    weight_decay: float = Field(default=1e-2, ge=0)
    """Weight decay of AdamW (matrices only)."""
    beta1: float = Field(default=0.9, ge=0, lt=1)
    """Decay of AdamW's first moment."""
    beta2: float = Field(default=0.98, ge=0, lt=1)
    """Decay of AdamW's second moment."""
    label_smoothing: float = Field(default=0.1, ge=0, lt=1)
    """Share of the probability spread over the vocabulary (Szegedy 2016)."""
    clip_norm: float = Field(default=1.0, ge=0)
    """Largest norm of the gradient, 0 for no clipping."""
    average_decay: float = Field(default=0.998, ge=0, lt=1)
    """Decay of the running average of the weights, which is what is validated and kept; 0 turns it off."""
    metric: str = "auto"
    """What is watched on the dev data: loss, or a decoded metric (exact, token, bleu, chrf, wer, cer, per,
    ter);
    auto is exact for targets of symbols or characters and chrf for longer text."""
    patience: int = Field(default=10, ge=0)
    """Validations without gain before the training stops early; 0 never stops early."""
    validate_every: int = Field(default=0, ge=0)
    """Updates between validations; 0 is about twenty times in a training, at most once an epoch."""
    max_dev_decoded: int = Field(default=500, ge=1)
    """Most dev pairs decoded for the metric at a validation."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """Precision of the matrix products; auto takes bfloat16 where the processor has units for it."""
    device: str = "auto"
    """Device: auto, cpu, cuda, cuda:1, mps."""
    save_every: int = Field(default=0, ge=0)
    """Updates between checkpoints; 0 is with each validation."""
    threads: int = Field(default=0, ge=0)
    """Threads of the processor, 0 for all cores."""
    seed: int = Field(default=1, ge=0)
    """Seed of everything random: split, first weights, order of the data, dropout."""
    tensorboard: bool = False
    """Write TensorBoard events to the folder `tensorboard` of the model (needs the extra `tensorboard`)."""

    @field_validator("metric")
    @classmethod
    def _known_metric(cls, value: str) -> str:
        return value if value in ("auto", "loss") else METRICS.check(value)

    @model_validator(mode="after")
    def _combination(self) -> TrainingSettings:
        if self.schedule == "plateau" and self.average_decay and self.validate_every == 1:
            raise ValueError("schedule: plateau with validate_every: 1 reacts to noise; validate less often")
        return self


class DecodingSettings(Settings):
    """How an output is searched for."""

    beam: int = Field(default=5, ge=1)
    """Hypotheses kept at each step; 1 is greedy."""
    nbest: int = Field(default=1, ge=1)
    """Hypotheses returned for each source; at most `beam`."""
    length_penalty: float = Field(default=1.0, ge=0)
    """Exponent a of the length normalisation score / ((5 + length) / 6)^a (Wu 2016, eq. 14)."""
    coverage_penalty: float = Field(default=0.0, ge=0)
    """Factor b of the coverage penalty (Wu 2016, eq. 14); needs attention."""
    max_len: int | None = Field(default=None, ge=1)
    """Longest output in tokens; by default derived from the source's length and the training data."""
    sample: bool = False
    """Draw at random instead of searching; `nbest` draws for each source."""
    temperature: float = Field(default=1.0, gt=0)
    """Divides the logits before sampling."""
    top_k: int = Field(default=0, ge=0)
    """Sample among the k likeliest tokens only; 0 for all."""
    top_p: float = Field(default=1.0, gt=0, le=1)
    """Sample among the likeliest tokens that together have this probability (Holtzman 2020)."""
    seed: int = Field(default=1, ge=0)
    """Seed of the sampling."""
    batch_size: int = Field(default=128, ge=1)
    """Sources decoded together."""
    precision: Literal["float32", "bfloat16", "int8"] = "float32"
    """Of the products with weights while decoding; `regard evaluate --precision` tells what another one costs."""
    copy_unknown: bool = False
    """Replace an unknown output token by the source symbol that it attends to most."""
    long_inputs: Literal["error", "truncate", "skip"] = "skip"
    """What happens to an input over `max_source_len`: error, truncate, or skip (an empty output); each is
    reported with the line, the length and the limit."""

    @model_validator(mode="after")
    def _combination(self) -> DecodingSettings:
        if self.nbest > self.beam and not self.sample:
            raise ValueError(
                f"nbest {self.nbest} is more than beam {self.beam}: a beam of n finds at most n; raise beam"
            )
        if not self.sample and (self.temperature != 1.0 or self.top_k or self.top_p != 1.0):
            raise ValueError("temperature, top_k and top_p need sample: true")
        return self


class Config(Settings):
    """All settings of a model and of the training that made it."""

    version: int = CONFIG_VERSION
    """Version of this format."""
    preset: str = "default"
    """The preset that the settings started from."""
    data: DataSettings = DataSettings()
    """Reading and tokens."""
    model: ModelSettings = ModelSettings()
    """The model."""
    training: TrainingSettings = TrainingSettings()
    """The training."""
    decoding: DecodingSettings = DecodingSettings()
    """Defaults of the decoding."""

    @model_validator(mode="after")
    def _combination(self) -> Config:
        if self.version != CONFIG_VERSION:
            raise ValueError(
                f"the format is version {self.version}, this regard reads {CONFIG_VERSION}: install the regard "
                "that wrote it, or train again"
            )
        if self.decoding.coverage_penalty and self.model.context != "attention":
            raise ValueError(
                f"decoding.coverage_penalty needs attention, but model.context is {self.model.context}"
            )
        return self

    def to_json(self) -> str:
        """The configuration as JSON text, ending in a newline."""
        return self.model_dump_json(indent=2) + "\n"


PRESETS: dict[str, dict[str, Any]] = {
    "default": {},
    # Deep, one direction, source reversed, encoder states copied, no attention.
    "sutskever2014": {
        "model": {
            "context": "last",
            "bridge": "copy",
            "bidirectional": False,
            "reverse_source": True,
            "encoder_layers": 4,
            "decoder_layers": 4,
            "dropout": 0.0,
        },
        "training": {"clip_norm": 5.0, "label_smoothing": 0.0},
    },
    # One GRU layer; c = tanh(V h_S) is fed to every step.
    "cho2014": {
        "model": {"cell": "gru", "context": "projected", "context_every_step": True, "bidirectional": False},
        "training": {"label_smoothing": 0.0},
    },
    # Additive attention with the previous state, context into the cell.
    "bahdanau2015": {
        "model": {"cell": "gru", "attend_before_cell": True, "attention": {"score": "additive"}},
        "training": {"label_smoothing": 0.0},
    },
    # General attention after the cell, with input feeding.
    "luong2015": {
        "model": {
            "bidirectional": False,
            "encoder_layers": 2,
            "decoder_layers": 2,
            "input_feeding": True,
            "reverse_source": True,
            "bridge": "copy",
            "attention": {"score": "general"},
        },
        "training": {"label_smoothing": 0.0, "clip_norm": 5.0},
    },
}


def merge(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """Return nested settings in which those of ``over`` replace those of ``base``."""
    merged = dict(base)
    for key, value in over.items():
        nested = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = merge(merged[key], value) if nested else value
    return merged


def _allowed_names(path: tuple[Any, ...]) -> list[str]:
    kind: Any = Config
    for part in path:
        field = (
            kind.model_fields.get(part) if isinstance(kind, type) and issubclass(kind, BaseModel) else None
        )
        if field is None:
            return []
        kind = field.annotation
    return list(kind.model_fields) if isinstance(kind, type) and issubclass(kind, BaseModel) else []


def _explain(error: ValidationError, origin: str) -> ConfigError:
    lines = []
    for item in error.errors():
        name = ".".join(str(part) for part in item["loc"])
        message = item["msg"].removeprefix("Value error, ")
        if item["type"] == "extra_forbidden":
            allowed = _allowed_names(item["loc"][:-1])
            message = f"no such setting{did_you_mean(str(item['loc'][-1]), allowed)}"
        elif not isinstance(item["input"], dict | BaseModel):
            message += f" (got {item['input']!r})"
        lines.append(f"{name}: {message}" if name else message)
    return ConfigError(f"{origin}: " + "; ".join(lines))


def make_config(
    settings: dict[str, Any] | None = None, *, preset: str = "default", origin: str = "settings"
) -> Config:
    """Make a configuration from a preset and nested settings that override it.

    Args:
        settings: Nested settings as in a YAML file, such as ``{"model": {"cell": "gru"}}``; a ``preset`` in
            it wins over the argument.
        preset: Name in `PRESETS`.
        origin: Where the settings came from, for messages.

    Raises:
        ConfigError: Unknown names, wrong values and impossible combinations, all in one message.
    """
    settings = dict(settings or {})
    preset = settings.setdefault("preset", preset)
    if preset not in PRESETS:
        raise ConfigError(
            f"{origin}: {preset!r} is none of the presets: {', '.join(PRESETS)}{did_you_mean(str(preset), PRESETS)}"
        )
    try:
        return Config.model_validate(merge(PRESETS[preset], settings))
    except ValidationError as error:
        raise _explain(error, origin) from None


def load_settings_file(path: str | Path) -> dict[str, Any]:
    """Read nested settings from a YAML file (written by hand) or a JSON file (of a model folder).

    Raises:
        ConfigError: The file cannot be read or holds no settings.
    """
    import yaml

    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
        settings = json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise ConfigError(f"{path}: cannot be read as settings: {error}".replace("\n", " ")) from None
    if settings is not None and not isinstance(settings, dict):
        raise ConfigError(f"{path}: expected settings by name, found {type(settings).__name__}")
    return settings or {}


def load_config(path: str | Path) -> Config:
    """Read a configuration from a file.

    Raises:
        ConfigError: The file cannot be read or does not hold valid settings.
    """
    return make_config(load_settings_file(path), origin=str(path))
