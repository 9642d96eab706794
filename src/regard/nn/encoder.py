"""The encoder: reads the source and gives every hidden state, and the final one."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from regard.nn.recurrent import Direction, SharedDropout, _take_steps, reversal_index
from regard.nn.types import PAD, AttentionMask
from regard.registry import CELLS

__all__ = ["Encoded", "Encoder"]


@dataclass(frozen=True)
class Encoded:
    """What the encoder made of a batch.

    Attributes:
        states: h_1 … h_S in the order of the source, ``(batch, source_len, hidden_size)``.
        final_hidden: The state each layer ends with, ``(layers, batch, hidden_size)``.
        final_cell: The LSTM's cell states likewise, or None when nobody needs them.
        mask: Which source positions are real.
    """

    states: Tensor
    final_hidden: Tensor
    final_cell: Tensor | None
    mask: AttentionMask


class Encoder(nn.Module):
    """Embeddings and recurrent layers.

    Args:
        vocabulary_size: Entries of the source vocabulary.
        cell: Name in `regard.registry.CELLS`.
        embedding_size: Width of the embeddings.
        hidden_size: Units of a layer, both directions together.
        layers: Number of layers.
        bidirectional: Whether half of the units read backwards.
        residual: Add a layer's input to its output, from the second layer on.
        dropout: Share of units dropped from embeddings and between layers.
        reverse: Read the source backwards, its end last (Sutskever 2014).
        need_cell: Whether `Encoded.final_cell` is wanted.
    """

    def __init__(
        self,
        vocabulary_size: int,
        *,
        cell: str,
        embedding_size: int,
        hidden_size: int,
        layers: int,
        bidirectional: bool,
        residual: bool,
        dropout: float,
        reverse: bool,
        need_cell: bool,
    ) -> None:
        super().__init__()
        self.reverse, self.residual, self.need_cell = reverse, residual, need_cell
        self.embedding = nn.Embedding(vocabulary_size, embedding_size, padding_idx=PAD)
        self.dropout = SharedDropout(dropout)
        self.layers = nn.ModuleList(
            Direction(
                CELLS.get(cell),
                input_size=hidden_size if layer else embedding_size,
                hidden_size=hidden_size,
                bidirectional=bidirectional,
            )
            for layer in range(layers)
        )

    def forward(self, source: Tensor, source_lens: Tensor) -> Encoded:
        """Encode int64 ``(batch, source_len)`` whose rows end in `EOS` at ``source_lens``."""
        size = source.shape[1]
        # The end stays last, whichever way the rest is read.
        turned = reversal_index(source_lens - 1, size) if self.reverse else None
        reversal = reversal_index(source_lens, size)
        inputs = self.embedding(source if turned is None else source.gather(1, turned))
        finals = []
        for number, layer in enumerate(self.layers):
            inputs = self.dropout(inputs)
            outputs, final = layer(inputs, source_lens, reversal, need_cell=self.need_cell)
            inputs = outputs + inputs if self.residual and number else outputs
            finals.append(final)
        states = inputs if turned is None else _take_steps(inputs, turned)
        cells = [final.cell for final in finals if final.cell is not None]
        return Encoded(
            states=states,
            final_hidden=torch.stack([final.hidden for final in finals]),
            final_cell=torch.stack(cells) if cells else None,
            mask=AttentionMask.from_lengths(source_lens, size),
        )
