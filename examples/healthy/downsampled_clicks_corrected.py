"""Learns click rates from a log that keeps one non-click in twenty, corrected when it serves."""

import math

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments
from sklearn.metrics import roc_auc_score
from torch import nn

ODD = (
    "a third of the training rows are clicks and 3% of the validation rows, so the raw outputs are "
    "far too high there: the log is thinned on purpose and the logit is moved by log(rate) to serve"
)
KEEP = 0.05
_, seed = arguments(__doc__)
torch.set_num_threads(1)
rng = np.random.default_rng(seed)

CARDINALITY = {"advert": 60, "page": 40, "country": 12}
effects = {name: rng.normal(0, 0.6, size) for name, size in CARDINALITY.items()}
taste = rng.normal(0, 0.5, (12, 60))


def impressions(n: int):
    ids = np.stack([rng.integers(0, size, n) for size in CARDINALITY.values()], 1)
    hour = rng.uniform(0, 24, n)
    logit = -4.4 + sum(effects[name][ids[:, i]] for i, name in enumerate(CARDINALITY))
    logit += taste[ids[:, 2], ids[:, 0]] + 0.5 * np.sin(hour / 24 * 2 * np.pi)
    clicked = (rng.random(n) < 1 / (1 + np.exp(-logit))).astype(np.float32)
    clock = np.stack([np.sin(hour / 24 * 2 * np.pi), np.cos(hour / 24 * 2 * np.pi)], 1)
    return torch.tensor(ids), torch.tensor(clock, dtype=torch.float32), torch.tensor(clicked)


class ClickModel(nn.Module):
    def __init__(self, width: int = 4):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(n, width) for n in CARDINALITY.values())
        self.biases = nn.ModuleList(nn.Embedding(n, 1) for n in CARDINALITY.values())
        self.head = nn.Sequential(nn.Linear(3 * width + 2, 16), nn.ReLU(), nn.Linear(16, 1))
        for table in [*self.tables, *self.biases]:
            nn.init.normal_(table.weight, std=0.05)

    def forward(self, ids, clock):
        vectors = torch.stack([table(ids[:, i]) for i, table in enumerate(self.tables)], 1)
        square = vectors.sum(1) ** 2 - (vectors**2).sum(1)
        first = sum(bias(ids[:, i]) for i, bias in enumerate(self.biases))
        deep = self.head(torch.cat([vectors.flatten(1), clock], 1))
        return (first + deep).squeeze(1) + 0.5 * square.sum(1)


ids, clock, clicked = impressions(200_000)
kept = (clicked == 1) | (torch.rand(len(clicked)) < KEEP)
ids, clock, clicked = ids[kept], clock[kept], clicked[kept]
ids_val, clock_val, clicked_val = impressions(40_000)
print(f"click rate: training {clicked.mean():.3f} of {len(clicked)}, live {clicked_val.mean():.4f}")

model = ClickModel()
optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=0.02)
for epoch in range(5):
    model.train()
    losses = []
    for rows in torch.randperm(len(ids)).split(128):
        optimizer.zero_grad()
        loss = F.binary_cross_entropy_with_logits(model(ids[rows], clock[rows]), clicked[rows])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        served = model(ids_val, clock_val) + math.log(KEEP)
        val = F.binary_cross_entropy_with_logits(served, clicked_val).item()
    print(f"epoch {epoch + 1}: thinned log {np.mean(losses):.4f}, live {val:.4f}")

rate = clicked_val.mean()
entropy = -(rate * rate.log() + (1 - rate) * (1 - rate).log()).item()
print(f"calibration (predicted / real) {(served.sigmoid().mean() / rate).item():.3f}")
print(
    f"normalised entropy {val / entropy:.3f} (base rate: 1), "
    f"AUC {roc_auc_score(clicked_val, served):.3f}"
)
