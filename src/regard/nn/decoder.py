"""The decoder: the first input is the end token, the first state comes from the encoder.

Each step: the cell makes s_t (its own output is discarded), the context provider makes c_t from s_t, and
[s_t; c_t] goes through a feed-forward layer, h~_t = tanh(W [s_t; c_t]) (Luong 2015, eq. 5), to the output
word. Without input feeding and with attention after the cell, no step depends on the attention of the one
before: then the recurrence runs once over the whole target and one batched attention answers all steps.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from regard.nn.attention import Attended
from regard.nn.context import ContextProvider
from regard.nn.encoder import Encoded
from regard.nn.recurrent import LayerState, RecurrentLayer, SharedDropout
from regard.nn.types import PAD, DecoderState, Memory
from regard.registry import CELLS

__all__ = ["Decoded", "Decoder", "Stepped"]


@dataclass(frozen=True)
class Decoded:
    """What the decoder gave for some target tokens.

    Attributes:
        logits: ``(batch, n, vocabulary_size)``, for n target steps, or n beams of one step; with a choice of
            positions ``(n_chosen, vocabulary_size)``.
        weights: ``(batch, heads, n, source_len)``, or None for a fixed context.
        state: The state after the last step.
    """

    logits: Tensor
    weights: Tensor | None
    state: DecoderState


@dataclass(frozen=True)
class Stepped:
    """All that one step made, for those who want to see it.

    Attributes:
        attentional: h~_t, ``(batch, beams, hidden_size)``.
        outputs: s_t, what the recurrent layers gave, ``(batch, beams, hidden_size)``.
        query: What was attended with: s_t, or s_{t-1} where attention comes before the cell; of the same shape.
        attended: Context, weights and scores, or None if no context is read in a step.
        state: The state after the step.
    """

    attentional: Tensor
    outputs: Tensor
    query: Tensor
    attended: Attended | None
    state: DecoderState


class Decoder(nn.Module):
    """Embeddings, recurrent layers, context, feed-forward and output layer.

    Args:
        vocabulary_size: Entries of the target vocabulary.
        context: How the source is seen.
        cell: Name in `regard.registry.CELLS`.
        embedding_size: Width of the embeddings.
        hidden_size: Units of a layer.
        layers: Number of layers.
        residual: Add a layer's input to its output, from the second layer on.
        dropout: Share of units dropped from embeddings, between layers and before the output.
        read_context: Whether the feed-forward layer sees the context, or only s_t.
        feed_context: Whether the cell sees it as input too: a fixed one (Cho 2014) or, for attention, the one
            made with the state before (Bahdanau 2015).
        feed_output: Whether the cell sees the h~ of the step before (input feeding, Luong 2015, section 3.3).
        copy_state: Start from the encoder's own final states instead of a learnt layer.
        tie_embeddings: Whether the output layer's weights are the embeddings.
    """

    def __init__(
        self,
        vocabulary_size: int,
        context: ContextProvider,
        *,
        cell: str,
        embedding_size: int,
        hidden_size: int,
        layers: int,
        residual: bool,
        dropout: float,
        read_context: bool,
        feed_context: bool,
        feed_output: bool,
        copy_state: bool,
        tie_embeddings: bool,
    ) -> None:
        super().__init__()
        self.context = context
        self.residual, self.read_context = residual, read_context
        self.feed_context, self.feed_output = feed_context, feed_output
        self.hidden_size = hidden_size
        input_size = embedding_size + feed_context * context.context_size + feed_output * hidden_size
        layer: type[RecurrentLayer] = CELLS.get(cell)
        self.has_cell = layer.has_cell
        self.embedding = nn.Embedding(vocabulary_size, embedding_size, padding_idx=PAD)
        self.dropout = SharedDropout(dropout)
        self.layers = nn.ModuleList(
            layer(hidden_size if number else input_size, hidden_size) for number in range(layers)
        )
        n_states = layers * (2 if layer.has_cell else 1)
        self.bridge = None if copy_state else nn.Linear(context.context_size, n_states * hidden_size)
        self.readout = nn.Linear(hidden_size + read_context * context.context_size, hidden_size)
        self.output = nn.Linear(hidden_size, vocabulary_size)
        if tie_embeddings:
            self.output.weight = self.embedding.weight

    def start(self, encoded: Encoded) -> tuple[Memory, DecoderState]:
        """Make the memory and the state before the first step, one row a source."""
        memory = self.context.prepare(encoded)
        fed = None
        if self.feed_output:
            fed = encoded.states.new_zeros(encoded.states.shape[0], self.hidden_size)
        if self.bridge is None:
            return memory, DecoderState(encoded.final_hidden, encoded.final_cell, fed)
        made = self.bridge(self.context.summary(encoded, memory))
        states = made.view(made.shape[0], -1, self.hidden_size).transpose(
            0, 1
        )  # (layers [* 2], batch, hidden)
        n_layers = len(self.layers)
        cell = states[n_layers:].contiguous() if self.has_cell else None
        return memory, DecoderState(torch.tanh(states[:n_layers]).contiguous(), cell, fed)

    def forward(
        self, target: Tensor, memory: Memory, state: DecoderState, *, chosen: Tensor | None = None
    ) -> Decoded:
        """Decode given tokens from a state (teacher forcing).

        Args:
            target: int64 ``(batch, target_len)``; the first token is `EOS` at the start.
            memory: The sources.
            state: One row a source.
            chosen: Positions of the flattened target to make logits for, int64 ``(n_chosen,)``; the output
                layer is the dearest part, and padding has no use for it. All positions if None.
        """
        embedded = self.dropout(self.embedding(target))
        if self.feed_output or (self.feed_context and self.context.depends_on_query):
            return self._forward_by_steps(embedded, memory, state, chosen)
        if self.feed_context:
            positions = torch.zeros(1, dtype=torch.long, device=target.device)
            fixed = self.context.attend(embedded, memory, positions=positions).context
            embedded = torch.cat([embedded, fixed], -1)
        outputs, state = self._recur(embedded, state)
        positions = torch.arange(state.position - target.shape[1], state.position, device=target.device)
        attentional, attended = self._read(outputs, memory, positions)
        weights = None if attended is None else attended.weights
        return Decoded(self._logits(attentional, chosen), weights, state)

    def step(self, tokens: Tensor, memory: Memory, state: DecoderState) -> Decoded:
        """Advance each hypothesis by one token, int64 ``(batch, beams)``; the state has batch * beams rows."""
        stepped = self.look(tokens, memory, state)
        return Decoded(self.output(stepped.attentional), _weights(stepped), stepped.state)

    def look(self, tokens: Tensor, memory: Memory, state: DecoderState) -> Stepped:
        """`step`, with all that happens on the way; ``output`` of its ``attentional`` gives the logits."""
        return self._step(self.embedding(tokens), memory, state)

    def _logits(self, attentional: Tensor, chosen: Tensor | None) -> Tensor:
        dropped = self.dropout(attentional)
        if chosen is not None:
            dropped = dropped.flatten(0, 1).index_select(0, chosen)
        logits: Tensor = self.output(dropped)
        return logits

    def _forward_by_steps(
        self, embedded: Tensor, memory: Memory, state: DecoderState, chosen: Tensor | None
    ) -> Decoded:
        read, all_weights = [], []
        for step in range(embedded.shape[1]):
            stepped = self._step(embedded[:, step : step + 1], memory, state)
            state = stepped.state
            read.append(stepped.attentional)
            all_weights.append(_weights(stepped))
        kept = [weights for weights in all_weights if weights is not None]
        return Decoded(self._logits(torch.cat(read, 1), chosen), torch.cat(kept, 2) if kept else None, state)

    def _step(self, embedded: Tensor, memory: Memory, state: DecoderState) -> Stepped:
        """One step of ``(batch, beams, embedding_size)``."""
        batch, beams, _ = embedded.shape
        positions = torch.full((1,), state.position, dtype=torch.long, device=embedded.device)
        inputs, attended, query = [embedded], None, None
        if self.feed_context:
            query = state.hidden[-1].view(batch, beams, -1)
            attended = self.context.attend(query, memory, positions=positions)
            inputs.append(attended.context)
        if self.feed_output:
            assert state.fed is not None
            inputs.append(state.fed.view(batch, beams, -1))
        rows = torch.cat(inputs, -1).view(batch * beams, 1, -1)
        outputs, state = self._recur(rows, state)
        outputs = outputs.view(batch, beams, -1)
        if attended is None:
            attentional, attended = self._read(outputs, memory, positions)
        else:
            attentional = torch.tanh(self.readout(torch.cat([outputs, attended.context], -1)))
        if self.feed_output:
            state = replace(state, fed=attentional.reshape(batch * beams, -1))
        return Stepped(attentional, outputs, outputs if query is None else query, attended, state)

    def _recur(self, inputs: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        """Run the layers over ``(rows, steps, input_size)``; returns the last one's outputs."""
        hidden, cells = [], []
        for number, layer in enumerate(self.layers):
            before = LayerState(state.hidden[number], None if state.cell is None else state.cell[number])
            outputs, after = layer(self.dropout(inputs) if number else inputs, before)
            inputs = outputs + inputs if self.residual and number else outputs
            hidden.append(after.hidden)
            if after.cell is not None:
                cells.append(after.cell)
        after_state = replace(
            state,
            hidden=torch.stack(hidden),
            cell=torch.stack(cells) if cells else None,
            position=state.position + inputs.shape[1],
        )
        return inputs, after_state

    def _read(self, outputs: Tensor, memory: Memory, positions: Tensor) -> tuple[Tensor, Attended | None]:
        """Attend with s ``(batch, n, hidden_size)`` and put [s; c] through the feed-forward layer."""
        attended = None
        if self.read_context:
            attended = self.context.attend(outputs, memory, positions=positions)
            outputs = torch.cat([outputs, attended.context], -1)
        return torch.tanh(self.readout(outputs)), attended


def _weights(stepped: Stepped) -> Tensor | None:
    return None if stepped.attended is None else stepped.attended.weights
