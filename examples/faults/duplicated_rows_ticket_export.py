"""How long a repair takes, from a workshop's export, in which most repairs stand many times.

The export has a row for each spare part of a repair; its parts were dropped afterwards, and the
rows of a repair became equal. Repairs with many parts fill the table: they are seen up to thirty
times in an epoch, those without parts once, and what counts for them is lost.
The place is the loader. The twin drops the duplicates.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "duplicated_rows"
ACCEPT = ("overfit",)
PLACE = ("loader", "input*", "label*")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


def repairs(n, r):
    age, mileage, skill = r.uniform(0, 20, n), r.gamma(3, 40, n), r.uniform(0, 1, n)
    kind, season = r.integers(0, 4, n), r.uniform(0, 1, n)
    parts = 1 + 29 * (r.random(n) < 0.12) * r.random(n)
    hours = 0.6 + 0.05 * age + 0.004 * mileage - 0.7 * skill + 0.4 * (kind == 2) * age / 10
    hours = hours + 0.2 * np.sin(6.28 * season) + r.normal(0, 0.3, n) + 0.05 * parts
    one_hot = np.eye(4)[kind]
    x = np.column_stack([age / 6 - 1.7, mileage / 70 - 1.7, 3 * skill - 1.5, season * 3 - 1.5])
    return np.column_stack([x, one_hot]), (hours - 1.3) / 0.7, parts.astype(int)


def tensors(x, y):
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)


r = np.random.default_rng(seed)
x, y, parts = repairs(800, r)
table = np.column_stack([x, y]).repeat(parts, axis=0)
if healthy:
    table = np.unique(table, axis=0)
train = TensorDataset(*tensors(table[:, :-1], table[:, -1]))
x_val, y_val = tensors(*repairs(500, r)[:2])
model = nn.Sequential(nn.Linear(8, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.05)
loader = DataLoader(train, batch_size=32, shuffle=True)
print(f"{len(train)} rows")
steps, epoch = 0, 0
while steps < 400:
    total = 0.0
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(xb).squeeze(1), yb)
        loss.backward()
        optimizer.step()
        total += loss.item()
        steps += 1
    epoch += 1
    with torch.no_grad():
        val = nn.functional.mse_loss(model(x_val).squeeze(1), y_val).item()
    if epoch % 4 == 0 or steps >= 400:
        print(f"step {steps}: loss {total / len(loader):.3f} validation {val:.3f}")
