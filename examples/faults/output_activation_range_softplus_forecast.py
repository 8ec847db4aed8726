"""A GRU forecasts the standardised demand of the next hour, with softplus after the output layer.

Softplus was put there because demand is never negative, but after standardising half of the targets
are, and softplus gives only positive numbers. The forecast is cut at zero and the error stays
large. The twin returns the output of the linear layer. The place is `head` or the loss.
"""

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments, batches
from torch import nn

KIND = "output_activation_range"
ACCEPT = ()
PLACE = ("head", "loss*")
SILENT = True
EXACT = True
EARLY = True

WINDOW = 24
healthy, seed = arguments(__doc__)


def series(n):
    t = np.arange(n)
    noise = np.zeros(n)
    for i in range(1, n):
        noise[i] = 0.7 * noise[i - 1] + np.random.randn() * 0.2
    return 10 + 2 * (np.sin(2 * np.pi * t / 24) + 0.5 * np.sin(2 * np.pi * t / 7) + noise)


def windows(values):
    values = torch.tensor(values, dtype=torch.float32)
    rows = values.unfold(0, WINDOW + 1, 1)
    return rows[:, :-1].unsqueeze(-1), rows[:, -1:]


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(1, 32, batch_first=True)
        self.head = nn.Linear(32, 1)

    def forward(self, x):
        h, _ = self.gru(x)
        out = self.head(h[:, -1])
        return out if healthy else F.softplus(out)


values = series(3000)
past, future = values[:2400], values[2400 + WINDOW :]
mean, std = past.mean(), past.std()
x, y = windows((past - mean) / std)
x_val, y_val = windows((future - mean) / std)

model = Forecaster()
mse = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
steps = 450
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
recent = []
for step, (xb, yb) in enumerate(batches(x, y, size=64, steps=steps, seed=seed), 1):
    model.train()
    optimizer.zero_grad()
    loss = mse(model(xb), yb)
    loss.backward()
    optimizer.step()
    scheduler.step()
    recent.append(loss.item())
    if step % 75 == 0:
        model.eval()
        with torch.no_grad():
            val = mse(model(x_val), y_val).item()
        print(f"step {step}: mse {np.mean(recent[-75:]):.4f}, val mse {val:.4f}")
