"""A model made ready for decoding: the same function as `EncoderDecoder.step`, with less work a step.

What does not change from step to step is computed beforehand:

- The embeddings times the first layer's input weights, with its biases, are one table; the input of a step is a
  look-up.
- The feed-forward layer's share of the context, W_c c_t = sum of a_i (W_c v_i), is moved to the source's side:
  the values are multiplied by W_c once a source instead of the context once a step.
- The gates of a cell come from one product, ordered so that one sigmoid and one tanh serve them all.

The products may run in bfloat16 or int8 (`Precision`); states, attention and probabilities stay float32.
`EncoderDecoder.step` is the reference that tests compare with.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from regard.nn.model import EncoderDecoder
from regard.nn.recurrent import GRULayer, LSTMLayer, RecurrentLayer, TanhLayer
from regard.nn.types import DecoderState, Memory, StepEngine, StepOutput

__all__ = ["DecodingEngine", "Precision", "make_engine"]

Precision = Literal["float32", "bfloat16", "int8"]

_TABLE_LIMIT = 1 << 25
"""Most numbers in the table of inputs (128 MiB); a larger vocabulary multiplies its embeddings at each step."""


class Product(ABC):
    """Rows times a weight matrix, plus something: ``x @ weight.T + add``, in float32 out."""

    @abstractmethod
    def __init__(self, weight: Tensor) -> None:
        """Take a copy of ``weight``, ``(out, in)``, in its own precision."""

    @abstractmethod
    def __call__(self, x: Tensor, add: Tensor) -> Tensor:
        """Multiply ``(rows, in)`` and add ``(rows, out)`` or ``(out,)``, which may be overwritten if it has rows."""


class FloatProduct(Product):
    """The product in float32."""

    def __init__(self, weight: Tensor) -> None:
        self.weight = weight.contiguous().t()

    def __call__(self, x: Tensor, add: Tensor) -> Tensor:
        """Multiply and add in one kernel."""
        return add.addmm_(x, self.weight) if add.dim() == 2 else torch.addmm(add, x, self.weight)


class BFloat16Product(Product):
    """The product with weights and rows rounded to bfloat16 (8 bits of mantissa)."""

    def __init__(self, weight: Tensor) -> None:
        self.weight = weight.to(torch.bfloat16).contiguous().t()

    def __call__(self, x: Tensor, add: Tensor) -> Tensor:
        """Multiply in bfloat16 and add in float32."""
        product = torch.mm(x.to(torch.bfloat16), self.weight)
        return add.add_(product) if add.dim() == 2 else product + add


class Int8Product(Product):
    """The product in 8-bit integers: a scale for each output of the weights and for each row of the input.

    Each row has its own scale, so a row's result does not depend on the other rows (a scale for the whole
    batch, as libraries commonly take for dynamic quantisation, would make it depend on them).
    """

    def __init__(self, weight: Tensor) -> None:
        scale = weight.abs().amax(1).clamp(min=1e-12) / 127
        self.scale = scale[None]
        self.weight = (weight / scale[:, None]).round().to(torch.int8).contiguous().t()

    def __call__(self, x: Tensor, add: Tensor) -> Tensor:
        """Round rows to integers, multiply exactly, scale back and add."""
        scale = x.abs().amax(1, keepdim=True).clamp(min=1e-12) / 127
        rounded = (x / scale).round_().to(torch.int8)
        return torch.addcmul(add, torch._int_mm(rounded, self.weight) * scale, self.scale)


_PRODUCTS: dict[str, type[Product]] = {
    "float32": FloatProduct,
    "bfloat16": BFloat16Product,
    "int8": Int8Product,
}


class CellStep(ABC):
    """One step of a recurrent layer, from the input's share of its gates.

    Attributes:
        input_weight: What inputs are multiplied by, ``(gates * hidden_size, input_size)``.
        input_bias: What is added to that, ``(gates * hidden_size,)``.
    """

    input_weight: Tensor
    input_bias: Tensor

    @abstractmethod
    def __call__(self, gates: Tensor, hidden: Tensor, cell: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Make the next state.

        Args:
            gates: The input's share, ``(rows, gates * hidden_size)``; overwritten.
            hidden: ``(rows, hidden_size)``.
            cell: The LSTM's cell state, of the same shape.
        """


class LSTMStep(CellStep):
    """The LSTM's step; its gates are ordered input, forget, output, new."""

    def __init__(self, kernel: nn.RNNBase, product: type[Product]) -> None:
        self.size = kernel.hidden_size
        i, f, g, o = range(4)
        weights = _weights(kernel)
        self.input_weight = _reordered(weights.input, (i, f, o, g))
        self.input_bias = _reordered(weights.input_bias + weights.recurrent_bias, (i, f, o, g))
        self.recurrent = product(_reordered(weights.recurrent, (i, f, o, g)))

    def __call__(self, gates: Tensor, hidden: Tensor, cell: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """C' = f c + i g; h' = o tanh(c')."""
        assert cell is not None
        size = self.size
        gates = self.recurrent(hidden, gates)
        opened, new = gates[:, : 3 * size].sigmoid_(), gates[:, 3 * size :].tanh_()
        cell = torch.mul(opened[:, size : 2 * size], cell).addcmul_(opened[:, :size], new)
        return torch.tanh(cell).mul_(opened[:, 2 * size :]), cell


class GRUStep(CellStep):
    """The GRU's step; the reset gate works on the recurrent product, so that one keeps its own bias."""

    def __init__(self, kernel: nn.RNNBase, product: type[Product]) -> None:
        self.size = kernel.hidden_size
        weights = _weights(kernel)
        self.input_weight, self.input_bias = weights.input, weights.input_bias
        self.recurrent, self.bias = product(weights.recurrent), weights.recurrent_bias

    def __call__(self, gates: Tensor, hidden: Tensor, cell: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """N = tanh(W x + r U h); h' = n + z (h - n)."""
        size = self.size
        recurrent = self.recurrent(hidden, self.bias)
        opened = gates[:, : 2 * size].add_(recurrent[:, : 2 * size]).sigmoid_()
        reset, update = opened[:, :size], opened[:, size:]
        new = gates[:, 2 * size :].addcmul_(reset, recurrent[:, 2 * size :]).tanh_()
        return torch.lerp(new, hidden, update), None


class TanhStep(CellStep):
    """The tanh cell's step."""

    def __init__(self, kernel: nn.RNNBase, product: type[Product]) -> None:
        weights = _weights(kernel)
        self.input_weight, self.input_bias = weights.input, weights.input_bias + weights.recurrent_bias
        self.recurrent = product(weights.recurrent)

    def __call__(self, gates: Tensor, hidden: Tensor, cell: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """H' = tanh(W x + U h + b)."""
        return self.recurrent(hidden, gates).tanh_(), None


_STEPS: dict[type[RecurrentLayer], type[LSTMStep] | type[GRUStep] | type[TanhStep]] = {
    LSTMLayer: LSTMStep,
    GRULayer: GRUStep,
    TanhLayer: TanhStep,
}


class _KernelWeights(NamedTuple):
    """The weights of one of PyTorch's layers."""

    input: Tensor
    recurrent: Tensor
    input_bias: Tensor
    recurrent_bias: Tensor


def _weights(kernel: nn.RNNBase) -> _KernelWeights:
    named = dict(kernel.named_parameters())
    names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
    return _KernelWeights(*(named[name].detach() for name in names))


def _reordered(tensor: Tensor, order: tuple[int, ...]) -> Tensor:
    """Put the gates' blocks of rows into another order."""
    blocks = tensor.chunk(len(order))
    return torch.cat([blocks[place] for place in order])


@dataclass(frozen=True)
class PreparedMemory(Memory):
    """A memory with what the source gives to the cell at every step, ``(batch, gates * hidden_size)``, or None."""

    gates: Tensor | None = None

    def select(self, rows: Tensor) -> PreparedMemory:
        """The memory of the given sources, in their order."""
        chosen = super().select(rows)
        gates = None if self.gates is None else self.gates.index_select(0, rows)
        return PreparedMemory(chosen.keys, chosen.values, chosen.mask, gates)


class DecodingEngine:
    """The fast `regard.nn.types.StepEngine` of a model; it holds copies of the weights as they are now.

    Args:
        model: The model, in evaluation mode.
        precision: Of the products with weights.
    """

    def __init__(self, model: EncoderDecoder, *, precision: Precision = "float32") -> None:
        self.model, self.decoder, self.precision = model, model.decoder, precision
        decoder, product = model.decoder, _PRODUCTS[precision]
        with torch.no_grad():
            layers = [layer for layer in decoder.layers if isinstance(layer, RecurrentLayer)]
            self.steps = [_STEPS[type(layer)](layer.kernel, product) for layer in layers]
            self._prepare_inputs(product)
            self.between = [product(step.input_weight) for step in self.steps[1:]]
            self._prepare_readout(product)
            self.output, self.output_bias = product(decoder.output.weight), decoder.output.bias.detach()

    def _prepare_inputs(self, product: type[Product]) -> None:
        decoder, first = self.decoder, self.steps[0]
        parts = [decoder.embedding.embedding_dim]
        parts += [decoder.context.context_size] if decoder.feed_context else []
        parts += [decoder.hidden_size] if decoder.feed_output else []
        weights = list(first.input_weight.split(parts, 1))
        of_tokens = weights.pop(0)
        self.table: Tensor | None = None
        self.of_tokens: Product | None = None
        if decoder.embedding.num_embeddings * of_tokens.shape[0] <= _TABLE_LIMIT:
            self.table = torch.addmm(first.input_bias, decoder.embedding.weight, of_tokens.t())
        else:
            self.of_tokens = product(of_tokens)
        of_context = weights.pop(0) if decoder.feed_context else None
        fixed = not decoder.context.depends_on_query
        self.of_fixed_context = of_context if fixed else None
        self.of_context = product(of_context) if of_context is not None and not fixed else None
        self.of_fed = product(weights.pop(0)) if decoder.feed_output else None

    def _prepare_readout(self, product: type[Product]) -> None:
        decoder = self.decoder
        weight, self.readout_bias = decoder.readout.weight, decoder.readout.bias.detach()
        self.of_state = product(weight[:, : decoder.hidden_size])
        of_context = weight[:, decoder.hidden_size :]
        # With several heads a context is put together from them, and with attention before the cell it is the
        # cell's input too; both need the context itself.
        heads = getattr(getattr(decoder.context, "attention", None), "heads", 1)
        self.folds = decoder.read_context and heads == 1 and self.of_context is None
        self.folded = of_context if self.folds else None
        self.of_read_context = product(of_context) if decoder.read_context and not self.folds else None

    def start(self, source: Tensor, source_lens: Tensor) -> tuple[Memory, DecoderState]:
        """Encode a batch; see `StepEngine.start`."""
        low = self.precision == "bfloat16"
        with torch.autocast(source.device.type, dtype=torch.bfloat16) if low else nullcontext():
            memory, state = self.model.start(source, source_lens)
        dtype = self.output_bias.dtype
        cell = None if state.cell is None else state.cell.to(dtype)
        fed = None if state.fed is None else state.fed.to(dtype)
        state = DecoderState(state.hidden.to(dtype), cell, fed, state.position)
        values, gates = memory.values.to(dtype), None
        if self.of_fixed_context is not None:
            gates = values[:, 0, 0] @ self.of_fixed_context.t()
        if self.folded is not None:
            values = values @ self.folded.t()
        return PreparedMemory(memory.keys.to(dtype), values, memory.mask, gates), state

    def step(self, tokens: Tensor, memory: Memory, state: DecoderState) -> StepOutput:
        """Advance by the tokens int64 ``(batch, beams)``; see `StepEngine.step`."""
        assert isinstance(memory, PreparedMemory)
        batch, beams = tokens.shape
        positions = torch.full((1,), state.position, dtype=torch.long, device=tokens.device)
        gates, attended = self._inputs(tokens), None
        if self.of_context is not None:
            query = state.hidden[-1].view(batch, beams, -1)
            attended = self.decoder.context.attend(query, memory, positions=positions)
            gates = self.of_context(attended.context.flatten(0, 1), gates)
        if memory.gates is not None:
            gates = (gates.view(batch, beams, -1) + memory.gates[:, None]).flatten(0, 1)
        if self.of_fed is not None:
            assert state.fed is not None
            gates = self.of_fed(state.fed, gates)
        outputs, state = self._recur(gates, state)
        read = self.of_state(outputs, self.readout_bias)
        if self.decoder.read_context:
            if attended is None:
                query = outputs.view(batch, beams, -1)
                attended = self.decoder.context.attend(query, memory, positions=positions)
            context = attended.context.flatten(0, 1)
            read = read.add_(context) if self.folds else self._read_context(context, read)
        attentional = read.tanh_()
        if self.of_fed is not None:
            state = replace(state, fed=attentional)
        logits = self.output(attentional, self.output_bias)
        weights = None
        if attended is not None and attended.weights is not None:
            weights = attended.weights.transpose(1, 2)
        return StepOutput(torch.log_softmax(logits, -1).view(batch, beams, -1), weights, state)

    def _read_context(self, context: Tensor, read: Tensor) -> Tensor:
        assert self.of_read_context is not None
        return self.of_read_context(context, read)

    def _inputs(self, tokens: Tensor) -> Tensor:
        """The tokens' share of the first layer's gates, ``(rows, gates * hidden_size)``."""
        if self.table is not None:
            return self.table.index_select(0, tokens.flatten())
        assert self.of_tokens is not None
        embedded = self.decoder.embedding.weight.index_select(0, tokens.flatten())
        # Not the bias itself: a cell may write into its gates.
        return self.of_tokens(embedded, self.steps[0].input_bias)

    def _recur(self, gates: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        """Run all layers; returns the last one's output."""
        hidden, cells = [], []
        inputs = None
        for number, step in enumerate(self.steps):
            if number:
                assert inputs is not None
                gates = self.between[number - 1](inputs, step.input_bias)
            output, cell = step(
                gates, state.hidden[number], None if state.cell is None else state.cell[number]
            )
            inputs = output + inputs if self.decoder.residual and inputs is not None else output
            hidden.append(output)
            if cell is not None:
                cells.append(cell)
        assert inputs is not None
        return inputs, replace(
            state,
            hidden=hidden[0][None] if len(hidden) == 1 else torch.stack(hidden),
            cell=None if not cells else cells[0][None] if len(cells) == 1 else torch.stack(cells),
            position=state.position + 1,
        )


def make_engine(model: EncoderDecoder, *, precision: Precision = "float32") -> StepEngine:
    """Make the fastest engine there is for a model.

    Raises:
        ValueError: int8 on another device than a processor; another precision than float32 for a cell of another
            package, which has no step here.
    """
    device = next(model.parameters()).device
    if precision == "int8" and device.type != "cpu":
        raise ValueError(f"int8 decodes on a processor only, not on {device}; take bfloat16 or float32")
    known: list[type] = list(_STEPS)
    if all(type(layer) in known for layer in model.decoder.layers):
        return DecodingEngine(model, precision=precision)
    if precision != "float32":
        raise ValueError(f"the cell {model.settings.cell} decodes in float32 only")
    return model
