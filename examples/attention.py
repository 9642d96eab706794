"""Attention as such, over any queries, keys and values:  python examples/attention.py.

A query asks three keys; the answer is mostly the value of the key that is most like it.
"""

import torch

from regard.nn.attention import Attention
from regard.nn.types import AttentionMask

attention = Attention(2, 2, score="dot")
keys = torch.tensor([[[4.0, 0.0], [0.0, 4.0], [-4.0, 0.0]]])
values = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [9.0, 9.0]]])
mask = AttentionMask(torch.tensor([[True, True, True]]))
query = torch.tensor([[[1.0, 0.2]]])

found = attention.attend(query, attention.prepare(keys, mask, values=values))
assert found.scores is not None
assert found.weights is not None
print("1. scores ", [round(value, 3) for value in found.scores[0, 0, 0].tolist()])
print("2. weights", [round(value, 3) for value in found.weights[0, 0, 0].tolist()])
print("3. value  ", [round(value, 3) for value in found.context[0, 0].tolist()])
