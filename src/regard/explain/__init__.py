"""Attention made visible: records, heat maps, alignments in the terminal."""
