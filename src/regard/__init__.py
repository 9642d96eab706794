"""Train, understand and ship attentional sequence-to-sequence models on your own pairs of sequences.

>>> import regard
>>> model = regard.train("pairs.tsv", preset="default", seed=1)
>>> for p in model.predict(["2026年12月1日"], beam=5):
...     p.text, p.score, p.attention, p.source_tokens
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from regard.api import load, train
    from regard.prediction import Prediction
    from regard.seq2seq import Seq2Seq

__all__ = ["Prediction", "Seq2Seq", "__version__", "load", "train"]

_HOMES = {
    "Prediction": "regard.prediction",
    "Seq2Seq": "regard.seq2seq",
    "load": "regard.api",
    "train": "regard.api",
}


def __getattr__(name: str) -> Any:
    # Looked up when first used, so that `import regard` does not wait for torch.
    if name not in _HOMES:
        raise AttributeError(f"module 'regard' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
