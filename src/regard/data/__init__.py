"""Text in, batches out: lines, readers, tokenizers, encoded pairs, bucketed batches, built-in corpora.

Nothing here imports torch, so that looking at data is quick.
"""
