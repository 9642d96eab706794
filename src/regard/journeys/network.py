"""The network of both jobs: the rest of the journey, and its outcomes."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from regard.journeys.cases import JourneyVocabulary
from regard.journeys.encoder import AttentionEncoder, BatchTensors, EventEmbedding, LSTMEncoder
from regard.journeys.settings import JourneyModelSettings
from regard.nn.attention import Attention
from regard.nn.context import AttentionContext
from regard.nn.decoder import Decoder
from regard.nn.encoder import Encoded
from regard.nn.types import EOS, PAD, AttentionMask, DecoderState, Memory, StepOutput

__all__ = ["JourneyNetwork", "OutcomePooling", "PrefixEngine", "ReadJourneys"]


@dataclass(frozen=True)
class ReadJourneys:
    """What the encoder made of a batch of whole journeys.

    Attributes:
        events: Embedded events, ``(batch, longest, hidden_size)``.
        states: ``(batch, longest, hidden_size)``.
    """

    events: Tensor
    states: Tensor

    def prefixes(self, rows: Tensor, sizes: Tensor) -> tuple[Encoded, Tensor]:
        """Prefixes of journeys, as encoded sources.

        Args:
            rows: The journey of each, int64 ``(n,)``.
            sizes: Events of each, int64 ``(n,)``, at least 1.

        Returns:
            The encoded prefixes, and their embedded events ``(n, longest, hidden_size)``.
        """
        longest = int(sizes.max())
        states = self.states[:, :longest].index_select(0, rows)
        final = self.states[rows, sizes - 1]
        mask = AttentionMask.from_lengths(sizes, longest)
        return Encoded(states, final[None], None, mask), self.events[:, :longest].index_select(0, rows)


class OutcomePooling(nn.Module):
    """Attention pooling: each outcome has a learnt query over keys (states) and values.

    Args:
        size: Width of states and events.
        n_outcomes: Number of outcomes.
        values: ``events`` or ``states``.
    """

    def __init__(self, size: int, n_outcomes: int, *, values: str) -> None:
        super().__init__()
        self.values = values
        self.query = nn.Parameter(torch.randn(n_outcomes, size) * size**-0.5)
        self.attention = Attention(size, size, score="general")
        self.readout = nn.Linear(size, size)
        self.output = nn.Parameter(torch.randn(n_outcomes, size) * size**-0.5)
        self.bias = nn.Parameter(torch.zeros(n_outcomes))

    def forward(self, encoded: Encoded, events: Tensor) -> tuple[Tensor, Tensor]:
        """Logits ``(n, n_outcomes)`` of prefixes, and weights ``(n, n_outcomes, longest)``."""
        values = events if self.values == "events" else encoded.states
        memory = self.attention.prepare(encoded.states, encoded.mask, values=values)
        attended = self.attention.attend(self.query.expand(events.shape[0], -1, -1), memory)
        assert attended.weights is not None
        read = torch.tanh(self.readout(attended.context))  # (n, n_outcomes, size)
        return (read * self.output).sum(-1) + self.bias, attended.weights[:, 0]


class JourneyNetwork(nn.Module):
    """Reads journeys once; answers for each of their prefixes.

    Args:
        vocabulary: Activities and further columns.
        settings: The model.
        n_outcomes: Number of outcomes.
    """

    def __init__(
        self, vocabulary: JourneyVocabulary, settings: JourneyModelSettings, *, n_outcomes: int
    ) -> None:
        super().__init__()
        size = settings.hidden_size
        self.settings = settings
        self.embedding = EventEmbedding(vocabulary, settings)
        self.encoder = LSTMEncoder(settings) if settings.encoder == "lstm" else AttentionEncoder(settings)
        self.decoder = Decoder(
            vocabulary.size,
            AttentionContext(Attention(size, size, score=settings.score, max_positions=settings.max_events)),
            cell="lstm",
            embedding_size=settings.embedding_size,
            hidden_size=size,
            layers=1,
            residual=False,
            dropout=settings.dropout,
            read_context=True,
            feed_context=False,
            feed_output=False,
            copy_state=False,
            tie_embeddings=False,
        )
        nn.init.zeros_(self.decoder.output.bias)
        self.outcomes = (
            OutcomePooling(size, n_outcomes, values=settings.outcome_values) if n_outcomes else None
        )

    def read(self, batch: BatchTensors) -> ReadJourneys:
        """Encode whole journeys."""
        events = self.embedding(batch)
        return ReadJourneys(events, self.encoder(events, batch))

    def continuation(self, encoded: Encoded, target: Tensor) -> tuple[Tensor, Tensor | None]:
        """Teacher forcing: logits after each token of ``target`` and the attention.

        Args:
            encoded: Prefixes.
            target: int64 ``(n, target_len)``, starting with `EOS`, padded.

        Returns:
            Logits ``(n, target_len, vocabulary_size)`` and weights ``(n, 1, target_len, longest)``.
        """
        memory, state = self.decoder.start(encoded)
        decoded = self.decoder(target, memory, state)
        return decoded.logits, decoded.weights

    def next_log_probs(self, encoded: Encoded) -> tuple[Tensor, Tensor]:
        """Log-probabilities of what follows prefixes ``(n, vocabulary_size)``, and the attention ``(n, longest)``.

        The end is `EOS`; padding has no probability.
        """
        first = torch.full((encoded.states.shape[0], 1), EOS, device=encoded.states.device)
        logits, weights = self.continuation(encoded, first)
        assert weights is not None
        return _log_probs(logits[:, 0]), weights[:, 0, 0]

    @property
    def n_parameters(self) -> int:
        """Number of trained numbers."""
        return sum(parameter.numel() for parameter in self.parameters())


def _log_probs(logits: Tensor) -> Tensor:
    logits = logits.float().clone()
    logits[..., PAD] = float("-inf")
    return torch.log_softmax(logits, -1)


class PrefixEngine:
    """A `regard.nn.types.StepEngine` for prefixes that are already encoded.

    Search asks for sources by number: its ``source`` is int64 ``(batch, 1)`` of rows of the prefixes.

    Args:
        network: The network.
        encoded: The prefixes.
        keep_weights: Whether the attention is wanted; without it a search of many samples needs less memory.
    """

    def __init__(self, network: JourneyNetwork, encoded: Encoded, *, keep_weights: bool = False) -> None:
        self.network, self.keep_weights = network, keep_weights
        self._memory, self._state = network.decoder.start(encoded)

    def start(self, source: Tensor, source_lens: Tensor) -> tuple[Memory, DecoderState]:
        """The memory and first state of the prefixes with the numbers in ``source``."""
        rows = source[:, 0]
        return self._memory.select(rows), self._state.select(rows)

    def step(self, tokens: Tensor, memory: Memory, state: DecoderState) -> StepOutput:
        """Advance by the tokens int64 ``(batch, beams)``."""
        decoded = self.network.decoder.step(tokens, memory, state)
        weights = None
        if self.keep_weights and decoded.weights is not None:
            weights = decoded.weights.float().transpose(1, 2)
        return StepOutput(_log_probs(decoded.logits), weights, decoded.state)
