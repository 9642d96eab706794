"""Reserved ids of every vocabulary, for those that should not need torch to know them."""

from __future__ import annotations

__all__ = ["EOS", "PAD", "UNK"]

PAD, EOS, UNK = 0, 1, 2
"""Padding, end (and first decoder input), unknown."""
