"""A 1-D CNN predicts a building's power for the next hour from the past two days, the target in
watts (about 60,000).

The input is standardised but the target is left in its unit, so the network's outputs near 0 must
creep up to tens of thousands. The place is the target, the loss.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "target_not_normalized"
ACCEPT = ()
PLACE = ("loss", "target", "loader", "input*")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


def power(hours, r):
    t = np.arange(hours)
    day = np.maximum(0, np.sin(2 * np.pi * (t % 24 - 6) / 24))
    work = (t // 24) % 7 < 5
    drift = np.zeros(hours)
    for i in range(1, hours):
        drift[i] = 0.9 * drift[i - 1] + r.normal(0, 1500)
    return 45_000 + 30_000 * day * (0.3 + 0.7 * work) + drift + r.normal(0, 1500, hours)


watts = torch.tensor(power(3500, np.random.default_rng(seed)), dtype=torch.float32)
cut = 2800
mean, std = watts[:cut].mean(), watts[:cut].std()
x = ((watts - mean) / std).unfold(0, 48, 1)[:-1].unsqueeze(1)
y = watts[48:]
shift, scale = (mean, std) if healthy else (0.0, 1.0)
y = (y - shift) / scale
train = DataLoader(TensorDataset(x[: cut - 48], y[: cut - 48]), batch_size=64, shuffle=True)
x_val, y_val = x[cut:], y[cut:]

model = nn.Sequential(
    nn.Conv1d(1, 16, 5, stride=2), nn.ReLU(), nn.Conv1d(16, 24, 5, stride=2), nn.ReLU(),
    nn.Flatten(), nn.Linear(24 * 9, 32), nn.ReLU(), nn.Linear(32, 1),
)  # fmt: skip
epochs = 15
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
for epoch in range(epochs):
    model.train()
    for xb, yb in train:
        loss = nn.functional.mse_loss(model(xb).squeeze(1), yb)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
    schedule.step()
    model.eval()
    with torch.no_grad():
        error = (model(x_val).squeeze(1) - y_val) * scale
    r2 = 1 - (error.square().mean() / (y_val * scale).var()).item()
    print(
        f"epoch {epoch}: loss {loss.item():.4g}, val RMSE {error.square().mean().sqrt():.0f} W, R2 {r2:.3f}"  # noqa: E501
    )
