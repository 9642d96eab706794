"""A model's weights, as NumPy arrays, made into the library's structures."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Mapping
from typing import Any

import numpy as np

from regard.config import ModelSettings
from regard.native.library import Layer, Library, Model, Product

__all__ = ["PreparedModel", "expected_shapes", "unsupported"]

_CELLS = {"rnn": 0, "gru": 1, "lstm": 2}
_SCORES = ("dot", "scaled_dot", "general", "additive")
_CONTEXTS = {"attention": 0, "last": 1, "projected": 1, "mean": 2, "max": 3, "query": 4}
_PRECISIONS = {"float32": 0, "bfloat16": 1}
_TABLE_LIMIT = 1 << 25
"""Most numbers in a table of inputs (128 MiB); a larger vocabulary multiplies its embeddings at each step."""


def unsupported(settings: ModelSettings) -> str:
    """What of a model the library lacks, or an empty string."""
    attention = settings.attention
    if settings.cell not in _CELLS:
        return f"cell {settings.cell}"
    if settings.context == "attention":
        if attention.score not in _SCORES:
            return f"score {attention.score}"
        if attention.heads > 1:
            return "several heads"
        if attention.window != "global":
            return f"window {attention.window}"
        if attention.normaliser != "softmax":
            return f"normaliser {attention.normaliser}"
    return ""


def expected_shapes(
    settings: ModelSettings, *, source_size: int, target_size: int
) -> dict[str, tuple[int, ...]]:
    """Name and shape of each parameter of a model that `unsupported` has nothing against."""
    size, width = settings.hidden_size, settings.embedding_size
    gates = {"rnn": 1, "gru": 3, "lstm": 4}[settings.cell]
    shapes: dict[str, tuple[int, ...]] = {
        "encoder.embedding.weight": (source_size, width),
        "decoder.embedding.weight": (target_size, width),
        "decoder.output.bias": (target_size,),
    }

    def add_layer(name: str, n_inputs: int, units: int) -> None:
        for part, columns in (("ih", n_inputs), ("hh", units)):
            shapes[f"{name}.kernel.weight_{part}_l0"] = (gates * units, columns)
            shapes[f"{name}.kernel.bias_{part}_l0"] = (gates * units,)

    def add_linear(name: str, n_inputs: int, n_outputs: int) -> None:
        shapes[f"{name}.weight"], shapes[f"{name}.bias"] = (n_outputs, n_inputs), (n_outputs,)

    for number in range(settings.encoder_layers):
        for direction in ("forwards", "backwards")[: 1 + settings.bidirectional]:
            units = size // (1 + settings.bidirectional)
            add_layer(f"encoder.layers.{number}.{direction}", size if number else width, units)
    attends = settings.context == "attention"
    feeds = settings.attend_before_cell or settings.context_every_step
    for number in range(settings.decoder_layers):
        first = width + size * (feeds + settings.input_feeding)
        add_layer(f"decoder.layers.{number}", size if number else first, size)
    add_linear("decoder.readout", size * (1 + (attends or settings.context_every_step)), size)
    if settings.bridge == "linear":
        add_linear("decoder.bridge", size, settings.decoder_layers * (1 + (settings.cell == "lstm")) * size)
    if not settings.tie_embeddings:
        shapes["decoder.output.weight"] = (target_size, size)
    if settings.context in ("projected", "pooled"):
        add_linear("decoder.context.projection", size, size)
    if settings.pool == "query":
        shapes["decoder.context.query"] = (1, 1, size)
    return {**shapes, **_score_shapes(settings)}


def _score_shapes(settings: ModelSettings) -> dict[str, tuple[int, ...]]:
    size, name = settings.hidden_size, "decoder.context.attention.score"
    if settings.context != "attention":
        return {}
    if settings.attention.score == "general":
        return {f"{name}.weight": (1, size, size)}
    if settings.attention.score == "additive":
        inner = settings.attention.size or size
        return {
            f"{name}.query_weight": (1, size, inner),
            f"{name}.key_weight": (1, size, inner),
            f"{name}.bias": (1, 1, inner),
            f"{name}.vector": (1, inner),
        }
    return {}


def _unpack(library: Library, products: list[Product]) -> None:
    for product in products:
        library.unpack(ctypes.byref(product))


class PreparedModel:
    """A model in the library's memory, freed with this object.

    Args:
        library: The library.
        settings: The model's settings, which `unsupported` has nothing against.
        weights: float32 arrays by the names that `EncoderDecoder` gives them.
        precision: Of the products with weights: float32 or bfloat16.

    Raises:
        ValueError: Names or shapes are not those of such a model.
    """

    def __init__(
        self, library: Library, settings: ModelSettings, weights: Mapping[str, np.ndarray], *, precision: str
    ) -> None:
        # The library would read past the end of an array that is too short.
        sizes = [len(weights.get(f"{side}.embedding.weight", ())) for side in ("encoder", "decoder")]
        expected = expected_shapes(settings, source_size=sizes[0], target_size=sizes[1])
        if {name: array.shape for name, array in weights.items()} != expected:
            raise ValueError("weights of another model")
        self._library, self._settings, self._weights = library, settings, weights
        self._precision = _PRECISIONS[precision]
        self._kept: list[Any] = []
        self._products: list[Product] = []
        # Not at the interpreter's exit, when ctypes is half gone; then the system frees it.
        weakref.finalize(self, _unpack, library, self._products).atexit = False
        self.struct = Model(kernels=library.kernels)
        self._set_sizes()
        self._set_encoder()
        self._set_context()
        self._set_decoder()

    def _array(self, values: np.ndarray) -> int:
        """The address of numbers that live as long as this object."""
        kept = np.ascontiguousarray(values, dtype=np.float32)
        self._kept.append(kept)
        return kept.ctypes.data

    def _product(self, weight: np.ndarray) -> Any:
        """Pack weights ``(out, in)``; returns a pointer."""
        rows = np.ascontiguousarray(weight, dtype=np.float32)
        product = Product(n=rows.shape[0], k=rows.shape[1], precision=self._precision)
        if self._library.pack(self._library.kernels, rows.ctypes.data, ctypes.byref(product)):
            raise MemoryError
        self._products.append(product)
        return ctypes.pointer(product)

    def _set_sizes(self) -> None:
        settings, made = self._settings, self.struct
        target = self._weights["decoder.embedding.weight"]
        made.size, made.embedding_size, made.vocabulary_size = (
            settings.hidden_size,
            target.shape[1],
            len(target),
        )
        made.encoder_layers, made.decoder_layers = settings.encoder_layers, settings.decoder_layers
        made.directions = 1 + settings.bidirectional
        made.residual, made.reverse = settings.residual, settings.reverse_source
        made.source_embedding = self._array(self._weights["encoder.embedding.weight"])
        made.target_embedding = self._array(target)
        longest = max(4 * settings.hidden_size, settings.embedding_size)
        made.zeros = self._array(np.zeros(longest))

    def _layer(self, name: str, *, embedding: np.ndarray | None, n_inputs: int | None = None) -> Layer:
        """Make a layer from the parameters under ``name``.

        Args:
            name: Where its kernel's parameters are.
            embedding: What the layer reads, if these are tokens.
            n_inputs: How many of the first inputs to take; the others get a product of their own.
        """
        get = {
            key: self._weights[f"{name}.{key}_l0"] for key in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        }
        input_weight, size = get["weight_ih"][:, :n_inputs], get["weight_hh"].shape[1]
        is_gru = self._settings.cell == "gru"
        bias = get["bias_ih"] if is_gru else get["bias_ih"] + get["bias_hh"]
        made = Layer(cell=_CELLS[self._settings.cell], size=size, base=self._array(bias))
        # A GRU's reset gate works on the recurrent product with its bias.
        made.recurrent_bias = self._array(get["bias_hh"])
        made.recurrent = self._product(get["weight_hh"])
        if embedding is not None and len(embedding) * len(bias) <= _TABLE_LIMIT:
            with np.errstate(all="ignore"):  # weights of a training that went wrong are told by the training
                table = embedding @ input_weight.T + bias
            made.table = self._array(table)
        else:
            made.input = self._product(input_weight)
        return made

    def _set_encoder(self) -> None:
        directions = ("forwards", "backwards")[: self.struct.directions]
        embedding = self._weights["encoder.embedding.weight"]
        layers = [
            self._layer(
                f"encoder.layers.{number}.{direction}.kernel", embedding=None if number else embedding
            )
            for number in range(self._settings.encoder_layers)
            for direction in directions
        ]
        self.struct.encoder = self._layers(layers)

    def _layers(self, layers: list[Layer]) -> Any:
        array = (Layer * len(layers))(*layers)
        self._kept.append((array, layers))
        return ctypes.cast(array, ctypes.POINTER(Layer))

    def _set_context(self) -> None:
        settings, made, name = self._settings, self.struct, "decoder.context"
        made.context = _CONTEXTS[settings.pool if settings.context == "pooled" else settings.context]
        made.key_size, made.key_scale = settings.hidden_size, 1.0
        if settings.context == "attention":
            self._set_score(settings.attention.score, f"{name}.attention.score")
        elif settings.context != "last":
            made.projection = self._product(self._weights[f"{name}.projection.weight"])
            made.projection_bias = self._array(self._weights[f"{name}.projection.bias"])
            if settings.pool == "query":
                query = self._weights[f"{name}.query"].reshape(-1)
                made.pool_query = self._array(query * settings.hidden_size**-0.5)

    def _set_score(self, score: str, name: str) -> None:
        made = self.struct
        if score == "scaled_dot":
            made.key_scale = self._settings.hidden_size**-0.5
        elif score == "general":
            made.keys = self._product(self._weights[f"{name}.weight"][0].T)
        elif score == "additive":
            made.additive = 1
            key_weight = self._weights[f"{name}.key_weight"][0]  # (key_size, size)
            made.key_size = key_weight.shape[1]
            made.keys = self._product(key_weight.T)
            made.key_bias = self._array(self._weights[f"{name}.bias"].reshape(-1))
            made.query = self._product(self._weights[f"{name}.query_weight"][0].T)
            made.score_vector = self._array(self._weights[f"{name}.vector"].reshape(-1))

    def _set_decoder(self) -> None:
        settings, made, size = self._settings, self.struct, self._settings.hidden_size
        embedding = self._weights["decoder.embedding.weight"]
        width = embedding.shape[1]
        layers = [self._layer("decoder.layers.0.kernel", embedding=embedding, n_inputs=width)]
        layers += [
            self._layer(f"decoder.layers.{number}.kernel", embedding=None)
            for number in range(1, settings.decoder_layers)
        ]
        made.decoder = self._layers(layers)
        attends = settings.context == "attention"
        feeds = settings.attend_before_cell or settings.context_every_step
        others = self._weights["decoder.layers.0.kernel.weight_ih_l0"][:, width:]  # [context; output before]
        if feeds:
            made.feed_context = self._product(others[:, :size])
        if settings.input_feeding:
            made.feed_output = self._product(others[:, -size:])
        readout = self._weights["decoder.readout.weight"]
        made.read_state = self._product(readout[:, :size])
        made.read_bias = self._array(self._weights["decoder.readout.bias"])
        if attends and not feeds:
            made.values = self._product(readout[:, size:])
        elif attends or feeds:
            made.read_context = self._product(readout[:, size:])
        output = self._weights.get("decoder.output.weight", embedding)
        made.output = self._product(output)
        made.output_bias = self._array(self._weights["decoder.output.bias"])
        if settings.bridge == "linear":
            made.bridge = self._product(self._weights["decoder.bridge.weight"])
            made.bridge_bias = self._array(self._weights["decoder.bridge.bias"])
