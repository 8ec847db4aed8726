"""Clicks on adverts by a factorisation machine; all fields look up the first rows of the table.

One table holds the vectors of five categorical fields, as in the usual FM packages, and each
field's numbers begin at 0: an offset moves them to the rows of their own field. It was lost when
the data set was rewritten, so fields share rows and most of the table is never read.
The place is the embedding and the input. The twin adds the offsets.
"""

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "embedding_rows_unused"
ACCEPT = ()
PLACE = ("embedding", "linear", "embedding.weight", "linear.weight", "input*", "loader")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
FIELDS = {"site": 60, "advert": 80, "device": 6, "hour": 24, "region": 40}
SIZES = list(FIELDS.values())
OFFSETS = torch.tensor(np.concatenate([[0], np.cumsum(SIZES)[:-1]]))


class FactorisationMachine(nn.Module):
    def __init__(self, rows, dim=8):
        super().__init__()
        self.embedding = nn.Embedding(rows, dim)
        self.linear = nn.Embedding(rows, 1)
        self.bias = nn.Parameter(torch.zeros(1))
        nn.init.normal_(self.embedding.weight, std=0.05)
        nn.init.zeros_(self.linear.weight)

    def forward(self, ids):
        if healthy:
            ids = ids + OFFSETS
        v = self.embedding(ids)
        pairs = 0.5 * (v.sum(1) ** 2 - (v**2).sum(1)).sum(1)
        return self.bias + self.linear(ids).sum((1, 2)) + pairs


def impressions(n):
    r = np.random.default_rng(seed)
    ids = np.stack([r.integers(0, size, n) for size in SIZES], 1)
    main = [r.normal(0, 0.7, size) for size in SIZES]
    site, advert = r.normal(0, 0.9, (60, 3)), r.normal(0, 0.9, (80, 3))
    score = sum(effect[ids[:, f]] for f, effect in enumerate(main)) - 1.0
    score = score + (site[ids[:, 0]] * advert[ids[:, 1]]).sum(1)
    y = r.random(n) < 1 / (1 + np.exp(-score))
    return torch.tensor(ids), torch.tensor(y, dtype=torch.float32)


x, y = impressions(24000)
x_val, y_val, x, y = x[20000:], y[20000:], x[:20000], y[:20000]
model = FactorisationMachine(sum(SIZES))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
criterion = nn.BCEWithLogitsLoss()
for epoch in range(4):
    running = 0.0
    for rows in torch.randperm(len(x)).split(128):
        loss = criterion(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running += loss.item() * len(rows)
    with torch.no_grad():
        val = criterion(model(x_val), y_val).item()
    print(f"epoch {epoch}: log loss {running / len(x):.4f}, validation {val:.4f}")
