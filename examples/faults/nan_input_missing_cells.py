"""A risk model for patients is trained on a table whose empty cells became NaN.

Four in a hundred values of two columns were not measured and are NaN after reading; mean and
standard deviation are taken with nanmean, so the preparation does not show it. The loss is NaN from
the first batches on. The twin puts the mean (0 after scaling) into the empty cells. The place is
the input.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "nan_input"
ACCEPT = ()
PLACE = ("input*",)
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
COLUMNS = ["age", "weight", "pressure", "cholesterol", "glucose", "pulse"]

r = np.random.default_rng(seed)
n = 2400
table = np.stack(
    [
        r.uniform(25, 85, n),
        r.normal(78, 14, n),
        r.normal(130, 18, n),
        r.normal(205, 40, n),
        r.lognormal(4.6, 0.2, n),
        r.normal(70, 10, n),
    ],
    1,
)
z = (table - table.mean(0)) / table.std(0)
risk = z[:, 0] + 0.8 * z[:, 2] + 0.6 * z[:, 3] * z[:, 0] + 0.7 * z[:, 4] + r.logistic(0, 0.4, n)
label = (risk > 0).astype("float32")
for name in ("cholesterol", "glucose"):
    table[r.random(n) < 0.04, COLUMNS.index(name)] = np.nan

train, val = slice(0, 1800), slice(1800, n)
mean, std = np.nanmean(table[train], 0), np.nanstd(table[train], 0)
table = (table - mean) / std
if healthy:
    table = np.nan_to_num(table, nan=0.0)
x, y = torch.tensor(table, dtype=torch.float32), torch.tensor(label)

loader = DataLoader(TensorDataset(x[train], y[train]), batch_size=32, shuffle=True)
model = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 24), nn.ReLU(), nn.Linear(24, 1))
loss_fn = nn.BCEWithLogitsLoss()
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(1, 16):
    model.train()
    total = 0.0
    for xb, yb in loader:
        opt.zero_grad()
        loss = loss_fn(model(xb)[:, 0], yb)
        loss.backward()
        opt.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        out = model(x[val])[:, 0]
    acc = ((out > 0).float() == y[val]).float().mean()
    if epoch % 3 == 0:
        print(
            f"epoch {epoch} loss {total / len(loader):.4f} "
            f"val loss {loss_fn(out, y[val]):.4f} acc {acc:.3f}"
        )
