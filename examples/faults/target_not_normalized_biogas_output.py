"""Biogas of a plant by what it is fed; the target is in cubic metres a day, some 9,000.

The features went through the usual scaling, the target stands as the meter shows it. The network
begins near 0 and has to climb to 9,000 with steps of Adam of a thousandth each.
The place is the labels and the loss. The twin standardises the target, too.
"""

import numpy as np
import torch
from data import arguments, standardise
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "target_not_normalized"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("label*", "loss*", "target*", "loader")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


def plant(n):
    r = np.random.default_rng(seed)
    maize, manure, grass = r.gamma(6, 4, n), r.gamma(5, 8, n), r.gamma(3, 3, n)
    warm, acid = r.normal(39, 1.5, n), r.normal(7.4, 0.2, n)
    gas = 200 * maize + 28 * manure + 150 * grass
    gas = gas * np.exp(-((warm - 39.5) ** 2) / 12) * (1 - 0.8 * (acid - 7.4) ** 2)
    gas = gas + 2500 + r.normal(0, 250, n)
    x = np.stack([maize, manure, grass, warm, acid], 1)
    return torch.tensor(x).float(), torch.tensor(gas).float()


x, y = plant(2000)
x, x_val = standardise(x[:1600], x[1600:])
mean, std = (y[:1600].mean(), y[:1600].std()) if healthy else (0.0, 1.0)
y, y_val = y[:1600], y[1600:]
loader = DataLoader(TensorDataset(x, (y - mean) / std), batch_size=40, shuffle=True)
model = nn.Sequential(nn.Linear(5, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(20):
    total = 0.0
    for xb, yb in loader:
        loss = nn.functional.mse_loss(model(xb).squeeze(1), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / len(loader)
    with torch.no_grad():
        off = (model(x_val).squeeze(1) * std + mean - y_val).abs().mean().item()
    if epoch % 4 == 3:
        print(f"epoch {epoch + 1}: loss {total:.4g}, off by {off:.0f} cubic metres")
