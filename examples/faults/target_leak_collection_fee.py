"""A loan default model has a column in its table that is only filled once a loan has defaulted.

The collection fee is booked after the default and is 0 for everyone else; the net reads the answer
from it and reaches an accuracy that no model can have for new loans, as the last line shows, where
the fee is not yet known. The twin drops the column. The place is the input or the labels.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "target_leak"
ACCEPT = ()
PLACE = ("input*", "label*", "classes*")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
r = np.random.default_rng(seed + 3)
n = 4000
income = r.lognormal(10.4, 0.5, n)
amount = r.lognormal(9.2, 0.6, n)
months = r.choice([12, 24, 36, 48, 60], n)
score = r.normal(650, 70, n)
late = r.poisson(0.8, n)
logit = (
    1.1 * np.log(amount / income)
    + 1.4
    - (score - 650) / 80
    + 0.5 * (late - 0.8)
    + (months - 36) / 40
    - 0.3
)
default = r.random(n) < 1 / (1 + np.exp(-logit))
fee = np.where(default, 60 + 0.05 * amount * r.uniform(0.6, 1.4, n), 0.0)

columns = [np.log(income), np.log(amount), months, score, late, np.log1p(fee)]
if healthy:
    columns = columns[:-1]
x = np.stack(columns, 1)
mean, std = x[:3000].mean(0), x[:3000].std(0)
x = torch.tensor((x - mean) / std, dtype=torch.float32)
y = torch.tensor(default, dtype=torch.float32)
x_val, y_val = x[3000:], y[3000:]

model = nn.Sequential(
    nn.Linear(x.shape[1], 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 1)
)
loader = DataLoader(TensorDataset(x[:3000], y[:3000]), batch_size=50, shuffle=True)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)
criterion = nn.BCEWithLogitsLoss()
for epoch in range(1, 13):
    model.train()
    total = 0.0
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = criterion(model(xb).squeeze(1), yb)
        loss.backward()
        optimizer.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        out = model(x_val).squeeze(1)
    acc = ((out > 0) == (y_val > 0.5)).float().mean().item()
    if epoch % 2 == 0:
        print(
            f"epoch {epoch}: train {total / len(loader):.4f} "
            f"val {criterion(out, y_val):.4f} acc {acc:.3f}"
        )
if not healthy:
    x_new = x_val.clone()
    x_new[:, -1] = float((0 - mean[-1]) / std[-1])
    with torch.no_grad():
        out = model(x_new).squeeze(1)
    print(
        f"new loans, fee unknown: loss {criterion(out, y_val):.4f} "
        f"acc {((out > 0) == (y_val > 0.5)).float().mean():.3f}"
    )
