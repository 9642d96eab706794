"""Decoding on a processor by a small C library, without torch; what it cannot do, torch does as before.

The library (`csrc/`) is compiled when regard is installed, if there is a C compiler (`hatch_build.py`).
"""
