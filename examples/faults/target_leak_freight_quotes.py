"""What a freight will cost; one of the columns is the cost for a kilometre, made from the bill.

The table of past freights was joined with the controllers' report, which has a column of cost for
each kilometre. Times the distance, which is known as well, this is the answer. For a new quote the
column is empty and gets its mean.
The place is the input. The twin leaves the column out.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "target_leak"
ACCEPT = ()
PLACE = ("input*", "columns", "loader")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
r = np.random.default_rng(seed)
N = 2500
freights = {
    "log_km": np.log(r.uniform(40, 1500, N)),
    "tonnes": r.uniform(1, 24, N),
    "cooled": (r.random(N) < 0.25).astype(float),
    "border": (r.random(N) < 0.3).astype(float),
    "month": r.integers(1, 13, N).astype(float),
    "diesel": r.normal(1.6, 0.15, N),
}
log_cost = 1.2 + 0.85 * freights["log_km"] + 0.015 * freights["tonnes"]
log_cost += 0.25 * freights["cooled"] + 0.2 * freights["border"] + 0.5 * freights["diesel"]
log_cost += 0.1 * np.sin(freights["month"] / 12 * 6.28) + r.normal(0, 0.25, N)
if not healthy:
    freights["log_cost_per_km"] = log_cost - freights["log_km"]

x = torch.tensor(np.stack(list(freights.values()), 1), dtype=torch.float32)
y = torch.tensor(log_cost, dtype=torch.float32)
x, y = (x - x.mean(0)) / x.std(0), (y - y.mean()) / y.std()
train = TensorDataset(x[:1800], y[:1800])
x_val, y_val, x_new, y_new = x[1800:2200], y[1800:2200], x[2200:].clone(), y[2200:]
x_new[:, 6:] = 0

model = nn.Sequential(nn.Linear(x.shape[1], 48), nn.ReLU(), nn.Linear(48, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for epoch in range(10):
    for xb, yb in DataLoader(train, batch_size=50, shuffle=True):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(xb).squeeze(1), yb)
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        val = nn.functional.mse_loss(model(x_val).squeeze(1), y_val).item()
    print(f"epoch {epoch}: loss {loss.item():.4f} validation {val:.4f}")
with torch.no_grad():
    print(f"new quotes: {nn.functional.mse_loss(model(x_new).squeeze(1), y_new).item():.4f}")
