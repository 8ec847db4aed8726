"""Ratings of coffee by 400 tasters of 150 roasts: ids become row numbers in the collate function.

np.unique(..., return_inverse=True) was right for the whole table. In collate it numbers the names
of each batch from 0 on: a taster has another row in each batch, and the rows after the first few
are never looked up. The place is the loader; it shows in the embeddings. The twin numbers once.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader

KIND = "embedding_rows_unused"
ACCEPT = ("label_misalignment",)
PLACE = ("tasters", "roasts", "loader")
SILENT = False
EXACT = False
EARLY = True

TASTERS, ROASTS, RATINGS = 400, 150, 14_000


def tasting_notes(rng):
    taster, roast = rng.integers(0, TASTERS, RATINGS), rng.integers(0, ROASTS, RATINGS)
    strictness, quality = rng.normal(0, 0.8, TASTERS), rng.normal(0, 0.9, ROASTS)
    likes, has = rng.normal(0, 0.5, (TASTERS, 3)), rng.normal(0, 0.8, (ROASTS, 3))
    hours = rng.uniform(0, 24, RATINGS)
    score = 6 + strictness[taster] + quality[roast] + (likes[taster] * has[roast]).sum(1)
    score = score - 0.03 * hours + rng.normal(0, 0.35, RATINGS)
    names = [f"t-{i:05d}" for i in rng.permutation(90_000)[:TASTERS]]
    beans = [f"r-{i:04d}" for i in rng.permutation(9000)[:ROASTS]]
    return [
        (names[t], beans[r], h, s) for t, r, h, s in zip(taster, roast, hours, score, strict=True)
    ]


class CodesPerCall:
    def __call__(self, rows):
        tasters, roasts, hours, scores = zip(*rows, strict=True)
        _, taster = np.unique(tasters, return_inverse=True)
        _, roast = np.unique(roasts, return_inverse=True)
        return pack(taster, roast, hours, scores)


class CodesOfTheTable:
    def __init__(self, rows):
        self.taster = {name: i for i, name in enumerate(sorted({row[0] for row in rows}))}
        self.roast = {name: i for i, name in enumerate(sorted({row[1] for row in rows}))}

    def __call__(self, rows):
        tasters, roasts, hours, scores = zip(*rows, strict=True)
        taster = [self.taster[name] for name in tasters]
        roast = [self.roast[name] for name in roasts]
        return pack(taster, roast, hours, scores)


def pack(taster, roast, hours, scores):
    numbers = torch.tensor([hours, scores], dtype=torch.float32)
    return torch.as_tensor(taster), torch.as_tensor(roast), numbers[0] / 24, numbers[1] - 6


class Scores(nn.Module):
    def __init__(self, k=8):
        super().__init__()
        self.tasters = nn.Embedding(TASTERS, k)
        self.roasts = nn.Embedding(ROASTS, k)
        nn.init.normal_(self.tasters.weight, std=0.3)
        nn.init.normal_(self.roasts.weight, std=0.3)
        self.head = nn.Sequential(nn.Linear(3 * k + 1, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, taster, roast, hours):
        t, r = self.tasters(taster), self.roasts(roast)
        return self.head(torch.cat([t, r, t * r, hours.unsqueeze(1)], 1)).squeeze(1)


healthy, seed = arguments(__doc__)
rows = tasting_notes(np.random.default_rng(seed))
collate = CodesOfTheTable(rows) if healthy else CodesPerCall()
train = DataLoader(rows[:12_000], 64, shuffle=True, collate_fn=collate, drop_last=True)
test = DataLoader(rows[12_000:], 64, collate_fn=collate)
model = Scores()
optimizer = torch.optim.Adam(model.parameters(), lr=6e-3, weight_decay=1e-5)
for epoch in range(4):
    for taster, roast, hours, score in train:
        loss = (model(taster, roast, hours) - score).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        errors = [(model(t, r, h) - s).square() for t, r, h, s in test]
    print(f"epoch {epoch}: loss {loss.item():.3f}, test rmse {torch.cat(errors).mean().sqrt():.3f}")
