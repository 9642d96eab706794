"""Train, understand and ship attentional sequence-to-sequence models."""

__version__ = "0.1.0"
