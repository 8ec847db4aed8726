"""Card fraud, one payment in sixty: the plain loss is content with calling everything honest.

The notebook was written for a balanced sample and later given the whole stream. Accuracy looks
splendid, for 98 % of the payments are honest, and hardly one fraud is found. The place is the
loss (it weighs both classes alike) or the loader.
The twin gives frauds their weight in the loss.
"""

import numpy as np
import torch
from data import arguments
from sklearn.metrics import balanced_accuracy_score, recall_score
from torch import nn

KIND = "class_imbalance"
ACCEPT = ()
PLACE = ("loss*", "loader", "input*")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
rng = np.random.default_rng(seed + 77)


def payments(n):
    fraud = rng.random(n) < 1 / 60
    amount = rng.lognormal(3.2, 1.0, n) * np.where(fraud, 1.9, 1.0)
    hour = (rng.normal(15, 4, n) - 7 * fraud * (rng.random(n) < 0.5)) % 24
    abroad = rng.random(n) < np.where(fraud, 0.45, 0.06)
    since = rng.exponential(np.where(fraud, 4.0, 20.0), n)
    tries = rng.poisson(np.where(fraud, 1.1, 0.15), n)
    table = [np.log(amount), np.sin(hour / 3.82), np.cos(hour / 3.82), abroad, np.log1p(since)]
    x = np.stack([*table, tries], 1)
    return torch.tensor(x, dtype=torch.float32), torch.tensor(fraud, dtype=torch.float32)


x, y = payments(9000)
x_test, y_test = payments(4000)
mean, std = x.mean(0), x.std(0)
x, x_test = (x - mean) / std, (x_test - mean) / std

scorer = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(scorer.parameters(), lr=1e-3, weight_decay=1e-4)
weight = (y == 0).sum() / y.sum() if healthy else None
criterion = nn.BCEWithLogitsLoss(pos_weight=weight)

for epoch in range(1, 7):
    losses = []
    for idx in torch.randperm(len(x)).split(90):
        optimizer.zero_grad()
        loss = criterion(scorer(x[idx]).squeeze(1), y[idx])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    with torch.no_grad():
        said = (scorer(x_test).squeeze(1) > 0).float()
    print(
        f"epoch {epoch} loss {np.mean(losses):.4f} | test: accuracy"
        f" {(said == y_test).float().mean():.3f} recall {recall_score(y_test, said):.3f}"
        f" balanced {balanced_accuracy_score(y_test, said):.3f}"
    )
