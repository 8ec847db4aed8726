"""Forecast of the water level in a harbour, with a learning rate that starts afresh now and then;
at each restart the loss jumps up for a while.
"""

import math

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = "the loss rises at each warm restart of the learning rate and ends lower each time"

_, seed = arguments(__doc__)

hours = torch.arange(24 * 150).float()
level = torch.zeros_like(hours)
for period, height in ((12.42, 1.3), (12.0, 0.4), (25.82, 0.25), (6.21, 0.12)):
    level = level + height * torch.cos(2 * math.pi * hours / period + 6.283 * torch.rand(1))
surge = torch.zeros_like(hours)
for t in range(1, len(hours)):
    surge[t] = 0.95 * surge[t - 1] + 0.05 * torch.randn(())
level = level + surge
cut = int(0.75 * len(level))
level = (level - level[:cut].mean()) / level[:cut].std()
LAG, AHEAD = 48, 12


def windows(series):
    pieces = series.unfold(0, LAG + AHEAD, 1)
    return pieces[:, :LAG], pieces[:, LAG:]


x, y = windows(level[:cut])
x_val, y_val = windows(level[cut:])
model = nn.Sequential(nn.Linear(LAG, 64), nn.GELU(), nn.Linear(64, AHEAD))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)
schedule = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=6, eta_min=1e-4)
loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)
for epoch in range(24):
    total = 0.0
    for number, (xb, yb) in enumerate(loader):
        loss = nn.functional.mse_loss(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step(epoch + number / len(loader))
        total += loss.item()
    if epoch % 3 == 2:
        with torch.no_grad():
            val = nn.functional.mse_loss(model(x_val), y_val).item()
        print(
            f"epoch {epoch + 1}: lr {optimizer.param_groups[0]['lr']:.4f} "
            f"loss {total / len(loader):.4f} val {val:.4f}"
        )
