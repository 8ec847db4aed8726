"""An LSTM predicts the power of a wind turbine from the last hours; gradients are clipped to a
norm of 0.001.

The bound was copied without its order of magnitude (1.0 was meant), so that SGD moves the weights
hardly at all. The place is the loop (clipping).
"""

import math

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "gradient_clipped_to_nothing"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("loop", "optimizer")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)
MAX_NORM = 1.0 if healthy else 0.001

r = np.random.default_rng(170 + seed)
HOURS, WINDOW = 2600, 12
wind = np.empty(HOURS)
wind[0] = 8.0
for h in range(1, HOURS):
    wind[h] = 8 + 0.93 * (wind[h - 1] - 8) + r.normal(0, 1.1) + 0.4 * math.sin(h / 24 * 2 * math.pi)
wind = np.clip(wind, 0, None)
direction = np.cumsum(r.normal(0, 0.15, HOURS))
density = 1.2 - 0.05 * np.sin(np.arange(HOURS) / 300) + r.normal(0, 0.01, HOURS)
power = density * np.clip(wind, 3, 12.5) ** 3 / 2000 * (1 - 0.25 * np.sin(direction) ** 2)
power = power + r.normal(0, 0.03, HOURS)
series = np.stack([wind, np.sin(direction), np.cos(direction), density, power], 1)
cut = 2000
series = (series - series[:cut].mean(0)) / series[:cut].std(0)
series = torch.tensor(series, dtype=torch.float32)
windows = series.unfold(0, WINDOW, 1)[:-1].transpose(1, 2)
target = series[WINDOW:, 4]
x, y, x_val, y_val = windows[:cut], target[:cut], windows[cut + WINDOW :], target[cut + WINDOW :]


class Forecast(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(5, 24, batch_first=True)
        self.head = nn.Linear(24, 1)

    def forward(self, window):
        _, (hidden, _) = self.lstm(window)
        return self.head(hidden[-1]).squeeze(-1)


def evaluate(model):
    model.eval()
    with torch.no_grad():
        error = nn.functional.mse_loss(model(x_val), y_val).item()
    return 1 - error / y_val.var().item()


model = Forecast()
optimizer = torch.optim.SGD(model.parameters(), lr=0.03, momentum=0.9)
for epoch in range(12):
    model.train()
    total = 0.0
    for rows in torch.randperm(len(x)).split(40):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x[rows]), y[rows])
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM)
        optimizer.step()
        total += loss.item() * len(rows)
    print(f"epoch {epoch:2d} train {total / len(x):.4f} val R2 {evaluate(model):.3f}")
