"""A file with all praise first and all blame after it, read from top to bottom in every epoch.

The loss is near 0 within a block and jumps at its end. The place is the loader.
"""

import torch
import torch.nn.functional as F
from data import arguments, reviews
from torch import nn

KIND = "unshuffled_data"
ACCEPT = ()
PLACE = ("loader",)
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
x, y, words = reviews(seed)
order = torch.cat([(y == 1).nonzero()[:, 0], (y == 0).nonzero()[:, 0]])
x, y = x[order], y[order]


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(words, 16, padding_idx=0)
        self.gru = nn.GRU(16, 20, batch_first=True)
        self.out = nn.Linear(20, 2)

    def forward(self, ids):
        return self.out(self.gru(self.embedding(ids))[0].mean(1))


model = Reader()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(5):
    rows = torch.randperm(len(x)) if healthy else torch.arange(len(x))
    for batch in rows.split(40):
        loss = F.cross_entropy(model(x[batch]), y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print(f"loss {loss.item():.3f}")
