"""Encoders, attention and decoders: tensors, lengths and masks in, tensors out; knows no text."""
