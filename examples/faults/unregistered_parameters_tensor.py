"""The position vectors are a tensor with requires_grad, not an nn.Parameter: no optimizer sees
them.

The question is whether a word of praise or blame stands in the first half. The place is the
attribute `position`. The model does what it can without (silent). Exact: a leaf of the graph that
the model does not have.
"""

import torch
import torch.nn.functional as F
from data import arguments, batches, reviews
from torch import nn

KIND = "unregistered_parameters"
ACCEPT = ("parameters_not_in_optimizer",)
PLACE = ("position*", "")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
x, _, words = reviews(seed)
y = (x[:, :5] < 13).any(1).long()


class Reader(nn.Module):
    def __init__(self, width=24, length=16):
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        if healthy:
            self.position = nn.Parameter(torch.randn(length, width) * 0.02)
        else:
            self.position = (torch.randn(length, width) * 0.02).requires_grad_()
        self.attention = nn.MultiheadAttention(width, 2, batch_first=True)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 2)

    def forward(self, ids):
        h = self.embedding(ids) + self.position
        h = self.norm(h + self.attention(h, h, h, need_weights=False)[0])
        return self.head(h.mean(1))


model = Reader()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for ids, labels in batches(x, y, size=32, steps=240, seed=seed):
    loss = F.cross_entropy(model(ids), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}")
