"""Text vectors are divided by their length without an epsilon; three texts are empty.

An empty text is 0 / 0: NaN in one row, in the loss, and then in all weights. The place is the
module that normalises. Exact: it is the first that is not finite.
"""

import torch
import torch.nn.functional as F
from data import arguments, batches, reviews
from torch import nn

KIND = "division_by_zero_norm"
ACCEPT = ("numerical_instability",)
PLACE = ("unit*", "", "bag*")
SILENT = False
EXACT = True
EARLY = False

healthy, seed = arguments(__doc__)
x, y, words = reviews(seed)
x[torch.randperm(len(x))[:3]] = 0


class UnitLength(nn.Module):
    def forward(self, h):
        return h / (h.norm(dim=1, keepdim=True) + (1e-6 if healthy else 0))


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.bag = nn.EmbeddingBag(words, 32, mode="sum", padding_idx=0)
        self.unit = UnitLength()
        self.head = nn.Linear(32, 2)

    def forward(self, ids):
        return self.head(4 * self.unit(self.bag(ids)))


model = Reader()
optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
for ids, labels in batches(x, y, size=32, steps=250, seed=seed):
    loss = F.cross_entropy(model(ids), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}")
