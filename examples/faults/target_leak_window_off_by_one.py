"""A dilated convolutional network forecasts the next hour's load of a power grid from the 24 hours
before. The windows are cut one hour too long.

The last entry of each input is the very hour that is to be forecast; the error falls far below the
noise of the series, and a forecast that knows only the past is no good. The place is the input.
"""

import math

import torch
from data import arguments, batches
from torch import nn

KIND = "target_leak"
ACCEPT = ()
PLACE = ("input",)
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
PAST = 24


def load(hours, g):
    t = torch.arange(hours, dtype=torch.float32)
    daily = torch.sin(2 * math.pi * t / 24) + 0.4 * torch.sin(4 * math.pi * t / 24 + 1)
    weekly = 0.5 * (((t // 24) % 7) < 5).float()
    drift = torch.zeros(hours)
    shocks = 0.35 * torch.randn(hours, generator=g)
    for i in range(1, hours):
        drift[i] = 0.7 * drift[i - 1] + shocks[i]
    series = daily + weekly + drift
    return (series - series.mean()) / series.std()


def windows(series):
    """Inputs (n, hours, 1) and the value of the hour after."""
    starts = range(len(series) - PAST - 1)
    end = PAST if healthy else PAST + 1
    x = torch.stack([series[i : i + end] for i in starts])
    y = torch.stack([series[i + PAST] for i in starts])
    return x.unsqueeze(1), y


class Causal(nn.Module):
    def __init__(self, a, b, dilation):
        super().__init__()
        self.pad = nn.ConstantPad1d((2 * dilation, 0), 0.0)
        self.conv = nn.Conv1d(a, b, 3, dilation=dilation)

    def forward(self, x):
        return torch.relu(self.conv(self.pad(x)))


class Forecast(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.stack = nn.Sequential(
            Causal(1, width, 1),
            Causal(width, width, 2),
            Causal(width, width, 4),
            Causal(width, width, 8),
        )
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        return self.out(self.stack(x)[..., -1]).squeeze(-1)


g = torch.Generator().manual_seed(seed)
series = load(3000, g)
x, y = windows(series[:2300])
x_val, y_val = windows(series[2300:])
model = Forecast()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, betas=(0.9, 0.98))
mse = nn.MSELoss()
for step, (xb, yb) in enumerate(batches(x, y, size=64, steps=600, seed=seed), 1):
    loss = mse(model(xb), yb)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 60 == 0:
        with torch.no_grad():
            print(f"step {step} train {loss.item():.5f} val {mse(model(x_val), y_val).item():.5f}")

with torch.no_grad():  # as it will run: the hour to come is not there yet
    past = torch.stack([series[i : i + PAST] for i in range(2300, 2970)]).unsqueeze(1)
    ahead = torch.stack([series[i + PAST] for i in range(2300, 2970)])
    print(
        f"live: {mse(model(past), ahead).item():.4f} "
        f" (yesterday's value: {mse(past[:, 0, 0], ahead).item():.4f})"
    )
