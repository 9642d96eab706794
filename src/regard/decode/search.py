"""The one entrance to every search."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from regard.config import DecodingSettings
from regard.decode.beam import beam_search
from regard.decode.greedy import greedy_search
from regard.decode.hypothesis import Hypothesis
from regard.decode.sampling import sample
from regard.nn.types import StepEngine

__all__ = ["search"]


def search(
    engine: StepEngine,
    source: Tensor,
    source_lens: Tensor,
    *,
    settings: DecodingSettings,
    max_lens: Sequence[int],
    keys: Sequence[int] | None = None,
) -> list[list[Hypothesis]]:
    """Search for outputs; what is found for a source does not depend on the others in the batch.

    Args:
        engine: The model.
        source: int64 ``(batch, source_len)``, each row ending in `EOS`, padded.
        source_lens: int64 ``(batch,)``, the end counted.
        settings: Greedy (beam 1), beam or sampling, and its options.
        max_lens: Longest output of each source in tokens, the end counted.
        keys: For sampling, a number of each source that with ``settings.seed`` decides its draws.

    Returns:
        For each source at most ``settings.nbest`` hypotheses, best first.
    """
    if settings.sample:
        chosen_keys = list(keys) if keys is not None else list(range(source.shape[0]))
        return sample(engine, source, source_lens, settings=settings, max_lens=max_lens, keys=chosen_keys)
    if settings.beam == 1:
        return greedy_search(engine, source, source_lens, settings=settings, max_lens=max_lens)
    found = beam_search(engine, source, source_lens, settings=settings, max_lens=max_lens)
    return [hypotheses[: settings.nbest] for hypotheses in found]
