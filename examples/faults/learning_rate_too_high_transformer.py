"""Adam with a learning rate of 1.0 on a small transformer: a rate for SGD kept when Adam was put
in.

The loss jumps in the first steps and takes long to come back. The place is the optimizer.
"""

import torch
import torch.nn.functional as F
from data import arguments, batches, reviews
from torch import nn

KIND = "learning_rate_too_high"
ACCEPT = ()
PLACE = ("optimizer",)
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
x, y, words = reviews(seed)


class Reader(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.position = nn.Parameter(torch.randn(16, width) * 0.02)
        self.block = nn.TransformerEncoderLayer(width, 2, 48, dropout=0.0, batch_first=True)
        self.head = nn.Linear(width, 2)

    def forward(self, ids):
        h = self.block(self.embedding(ids) + self.position)
        return self.head(h.mean(1))


model = Reader()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3 if healthy else 1.0)
for ids, labels in batches(x, y, size=32, steps=180, seed=seed):
    loss = F.cross_entropy(model(ids), labels)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}")
