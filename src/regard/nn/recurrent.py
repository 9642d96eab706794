"""Recurrent layers over padded batches, exact whatever the padding.

A layer runs over the padding too, which is cheaper than packing, and its state is then read at each
sequence's true end. The backward direction reads each sequence reversed within its own length, so that it
never meets padding before a real token.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

__all__ = [
    "GRULayer",
    "LSTMLayer",
    "LayerState",
    "RecurrentLayer",
    "SharedDropout",
    "TanhLayer",
    "reversal_index",
]


@dataclass(frozen=True)
class LayerState:
    """State of one layer: ``hidden`` and, for an LSTM, ``cell``, each ``(rows, hidden_size)``."""

    hidden: Tensor
    cell: Tensor | None = None


def reversal_index(lengths: Tensor, size: int) -> Tensor:
    """Index ``(batch, size)`` that reverses each row within its length and leaves the padding in place.

    It is its own inverse.
    """
    steps = torch.arange(size, device=lengths.device)[None, :]
    reversed_steps = lengths[:, None] - 1 - steps
    return torch.where(reversed_steps >= 0, reversed_steps, steps)


def _take_steps(tensor: Tensor, index: Tensor) -> Tensor:
    """Reorder the steps of ``(batch, steps, size)`` by ``(batch, steps)``."""
    return tensor.gather(1, index[:, :, None].expand(-1, -1, tensor.shape[2]))


class SharedDropout(nn.Module):
    """Dropout with one mask for all steps of a sequence (Gal & Ghahramani 2016).

    Besides regularising recurrent networks better than a new mask each step, it draws as many times fewer
    random numbers as there are steps.
    """

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, inputs: Tensor) -> Tensor:
        """Drop units of ``(rows, steps, size)``; the same ones at each step of a row."""
        if not self.training or self.rate == 0:
            return inputs
        kept = torch.empty(inputs.shape[0], 1, inputs.shape[2], dtype=inputs.dtype, device=inputs.device)
        return inputs * kept.bernoulli_(1 - self.rate).div_(1 - self.rate)


class RecurrentLayer(nn.Module, ABC):
    """One recurrent layer in one direction.

    Args:
        input_size: Width of the inputs.
        hidden_size: Units.
    """

    has_cell = False

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__()
        self.input_size, self.hidden_size = input_size, hidden_size
        self.kernel = self.make_kernel()
        for name, parameter in self.kernel.named_parameters():
            if name.startswith("bias"):
                nn.init.zeros_(parameter)
            else:
                # Each gate's block apart: input weights keep the variance, recurrent ones the norm.
                initialise = nn.init.xavier_uniform_ if name.startswith("weight_ih") else nn.init.orthogonal_
                for block in parameter.data.split(hidden_size):
                    initialise(block)
        self.initialise_biases()

    @abstractmethod
    def make_kernel(self) -> nn.RNNBase:
        """Make PyTorch's layer that does the computing."""

    def initialise_biases(self) -> None:
        """Set the biases that should not start at zero."""

    def forward(self, inputs: Tensor, state: LayerState | None = None) -> tuple[Tensor, LayerState]:
        """Run over all steps.

        Args:
            inputs: ``(rows, steps, input_size)``.
            state: The state before the first step; zeros if None.

        Returns:
            Outputs ``(rows, steps, hidden_size)`` and the state after the last step, padding included.
        """
        outputs, final = self.kernel(inputs, self._to_kernel(state))
        return outputs, self._from_kernel(final)

    def run_to_ends(self, inputs: Tensor, lengths: Tensor, *, need_cell: bool) -> tuple[Tensor, LayerState]:
        """Run from zeros over sequences of the given lengths; the state is that at each one's true end.

        Args:
            inputs: ``(rows, steps, input_size)``.
            lengths: int64 ``(rows,)``, at least 1.
            need_cell: Whether an LSTM's cell state is wanted too.
        """
        if need_cell and self.has_cell:
            # Only the outputs can be read at each true end; the cell state takes the slower packed run.
            packed = pack_padded_sequence(inputs, lengths.cpu(), batch_first=True, enforce_sorted=False)
            packed_outputs, final = self.kernel(packed)
            outputs, _ = pad_packed_sequence(packed_outputs, batch_first=True, total_length=inputs.shape[1])
            return outputs, self._from_kernel(final)
        outputs, _ = self.kernel(inputs)
        ends = (lengths - 1)[:, None, None].expand(-1, 1, outputs.shape[2])
        return outputs, LayerState(outputs.gather(1, ends)[:, 0])

    def _to_kernel(self, state: LayerState | None) -> object:
        return None if state is None else state.hidden[None].contiguous()

    def _from_kernel(self, final: Tensor | tuple[Tensor, Tensor]) -> LayerState:
        assert isinstance(final, Tensor)
        return LayerState(final[0])


class TanhLayer(RecurrentLayer):
    """h_t = tanh(W x_t + U h_(t-1) + b) (Elman 1990)."""

    def make_kernel(self) -> nn.RNNBase:
        """Make the tanh kernel."""
        return nn.RNN(self.input_size, self.hidden_size, batch_first=True)


class GRULayer(RecurrentLayer):
    """Gated recurrent unit (Cho 2014), with the reset gate after the product as in PyTorch and cuDNN."""

    def make_kernel(self) -> nn.RNNBase:
        """Make the GRU kernel."""
        return nn.GRU(self.input_size, self.hidden_size, batch_first=True)


class LSTMLayer(RecurrentLayer):
    """Long short-term memory with forget gate (Hochreiter 1997; Gers 2000)."""

    has_cell = True

    def make_kernel(self) -> nn.RNNBase:
        """Make the LSTM kernel."""
        return nn.LSTM(self.input_size, self.hidden_size, batch_first=True)

    def initialise_biases(self) -> None:
        """Open the forget gate at first, so that gradients reach far back (Jozefowicz 2015)."""
        forget = slice(self.hidden_size, 2 * self.hidden_size)
        nn.init.ones_(self.kernel.bias_ih_l0.data[forget])  # type: ignore[index]

    def _to_kernel(self, state: LayerState | None) -> object:
        if state is None:
            return None
        assert state.cell is not None
        return state.hidden[None].contiguous(), state.cell[None].contiguous()

    def _from_kernel(self, final: Tensor | tuple[Tensor, Tensor]) -> LayerState:
        return LayerState(final[0][0], final[1][0])


class Direction(nn.Module):
    """One or both directions of one encoder layer.

    Args:
        layer: Class of the layer (see `regard.registry.CELLS`).
        input_size: Width of the inputs.
        hidden_size: Units of both directions together.
        bidirectional: Whether half of the units read backwards.
    """

    def __init__(
        self, layer: type[RecurrentLayer], *, input_size: int, hidden_size: int, bidirectional: bool
    ) -> None:
        super().__init__()
        units = hidden_size // 2 if bidirectional else hidden_size
        self.forwards = layer(input_size, units)
        self.backwards = layer(input_size, units) if bidirectional else None

    def forward(
        self, inputs: Tensor, lengths: Tensor, reversal: Tensor, *, need_cell: bool
    ) -> tuple[Tensor, LayerState]:
        """Run over ``(batch, steps, input_size)``.

        Returns:
            Outputs ``(batch, steps, hidden_size)`` and the state each direction ends with, concatenated.
        """
        outputs, final = self.forwards.run_to_ends(inputs, lengths, need_cell=need_cell)
        if self.backwards is None:
            return outputs, final
        back, back_final = self.backwards.run_to_ends(
            _take_steps(inputs, reversal), lengths, need_cell=need_cell
        )
        outputs = torch.cat([outputs, _take_steps(back, reversal)], -1)
        cell = None
        if final.cell is not None and back_final.cell is not None:
            cell = torch.cat([final.cell, back_final.cell], -1)
        return outputs, LayerState(torch.cat([final.hidden, back_final.hidden], -1), cell)
