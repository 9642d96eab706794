"""The whole encoder-decoder, made from its settings; search drives it through `start` and `step`."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from regard.config import ModelSettings
from regard.nn.attention import Attention
from regard.nn.context import AttentionContext, ContextProvider, LastContext, PooledContext, ProjectedContext
from regard.nn.decoder import Decoded, Decoder
from regard.nn.encoder import Encoder
from regard.nn.types import PAD, DecoderState, Memory, StepOutput

__all__ = ["EncoderDecoder"]


def _make_context(settings: ModelSettings, *, max_positions: int) -> ContextProvider:
    size = settings.hidden_size
    if settings.context == "last":
        return LastContext(size)
    if settings.context == "projected":
        return ProjectedContext(size)
    if settings.context == "pooled":
        return PooledContext(size, pool=settings.pool)
    chosen = settings.attention
    attention = Attention(
        size,
        size,
        score=chosen.score,
        heads=chosen.heads,
        window=chosen.window,
        window_size=chosen.window_size,
        normaliser=chosen.normaliser,
        size=chosen.size,
        max_positions=max_positions,
    )
    return AttentionContext(attention)


class EncoderDecoder(nn.Module):
    """A sequence-to-sequence model; a `regard.nn.types.StepEngine`.

    Args:
        settings: The model's settings.
        source_size: Entries of the source vocabulary.
        target_size: Entries of the target vocabulary.
        max_positions: Longest source that the ``location`` score knows.
    """

    def __init__(
        self, settings: ModelSettings, *, source_size: int, target_size: int, max_positions: int = 500
    ) -> None:
        super().__init__()
        self.settings = settings
        attends = settings.context == "attention"
        self.encoder = Encoder(
            source_size,
            cell=settings.cell,
            embedding_size=settings.embedding_size,
            hidden_size=settings.hidden_size,
            layers=settings.encoder_layers,
            bidirectional=settings.bidirectional,
            residual=settings.residual,
            dropout=settings.dropout,
            reverse=settings.reverse_source,
            need_cell=settings.bridge == "copy",
        )
        self.decoder = Decoder(
            target_size,
            _make_context(settings, max_positions=max_positions),
            cell=settings.cell,
            embedding_size=settings.embedding_size,
            hidden_size=settings.hidden_size,
            layers=settings.decoder_layers,
            residual=settings.residual,
            dropout=settings.dropout,
            read_context=attends or settings.context_every_step,
            feed_context=settings.attend_before_cell or settings.context_every_step,
            feed_output=settings.input_feeding,
            copy_state=settings.bridge == "copy",
            tie_embeddings=settings.tie_embeddings,
        )
        for embedding in (self.encoder.embedding, self.decoder.embedding):
            nn.init.normal_(embedding.weight, std=settings.embedding_size**-0.5)
            nn.init.zeros_(embedding.weight.data[PAD])
        nn.init.zeros_(self.decoder.output.bias)

    def forward(
        self, source: Tensor, source_lens: Tensor, target: Tensor, *, chosen: Tensor | None = None
    ) -> Decoded:
        """Teacher forcing: logits for the token after each of ``target``.

        Args:
            source: int64 ``(batch, source_len)``, each row ending in `EOS`, padded.
            source_lens: int64 ``(batch,)``, the end counted.
            target: int64 ``(batch, target_len)``, starting with `EOS`, padded.
            chosen: See `Decoder.forward`.
        """
        memory, state = self.start(source, source_lens)
        decoded: Decoded = self.decoder(target, memory, state, chosen=chosen)
        return decoded

    def start(self, source: Tensor, source_lens: Tensor) -> tuple[Memory, DecoderState]:
        """Encode a batch; see `StepEngine.start`."""
        return self.decoder.start(self.encoder(source, source_lens))

    def step(self, tokens: Tensor, memory: Memory, state: DecoderState) -> StepOutput:
        """Advance by one token; see `StepEngine.step`."""
        decoded = self.decoder.step(tokens, memory, state)
        log_probs = torch.log_softmax(decoded.logits.float(), -1)
        weights = None if decoded.weights is None else decoded.weights.float().transpose(1, 2)
        return StepOutput(log_probs, weights, decoded.state)

    @property
    def n_parameters(self) -> int:
        """Number of trained numbers."""
        return sum(parameter.numel() for parameter in self.parameters())
