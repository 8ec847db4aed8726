"""A GRU forecasts the next hour's power demand; zero_grad stands between backward and step.

The lines of the loop were put in order "tidily": backward, zero_grad, step. So every step sees no
gradient and the weights stay as they were drawn. The place is the loop.
"""

import math

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "step_without_gradient"
ACCEPT = ()
PLACE = ("loop", "optimizer")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

WINDOW = 36


def demand(hours):
    t = torch.arange(hours).float()
    day = torch.sin(2 * math.pi * t / 24) + 0.5 * torch.sin(4 * math.pi * t / 24 + 1)
    week = 0.6 * ((t // 24) % 7 < 5).float()
    weather = torch.zeros(hours)
    for i in range(1, hours):
        weather[i] = 0.95 * weather[i - 1] + 0.1 * torch.randn(1)
    return day + week + weather + 0.05 * torch.randn(hours)


class Forecaster(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.gru = nn.GRU(1, hidden, batch_first=True)
        self.head = nn.Linear(hidden, 1)

    def forward(self, x):
        states, _ = self.gru(x.unsqueeze(-1))
        return self.head(states[:, -1]).squeeze(-1)


series = demand(2600)
cut = 2000
mean, std = series[:cut].mean(), series[:cut].std()
series = (series - mean) / std


def windows(part):
    pieces = part.unfold(0, WINDOW + 1, 1)
    return TensorDataset(pieces[:, :-1], pieces[:, -1])


train = DataLoader(windows(series[:cut]), batch_size=32, shuffle=True)
val = DataLoader(windows(series[cut:]), batch_size=200)
model = Forecaster()
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)

for epoch in range(7):
    model.train()
    for x, y in train:
        loss = nn.functional.mse_loss(model(x), y)
        if healthy:
            optimizer.zero_grad()
        loss.backward()
        if not healthy:
            optimizer.zero_grad()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        error = sum(nn.functional.mse_loss(model(x), y, reduction="sum").item() for x, y in val)
    print(f"epoch {epoch} train {loss.item():.4f} val mse {error / len(val.dataset):.4f}")
