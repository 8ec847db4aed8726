"""Noise of wing profiles by an MLP; early stopping waits for steps that a good training does not
make.

`min_delta=0.1` was chosen when the target was in decibels (a variance of 50); of the standardised
target an epoch never improves the loss by 0.1 after the first few, and five such epochs end the
training while the loss still falls. The place is the loop. The twin's min_delta is 0.0005.
"""

import torch
from data import arguments, standardise
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "stopped_too_early"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("loop",)
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)


class EarlyStopping:
    def __init__(self, patience=5, min_delta=0.0):
        self.patience, self.min_delta, self.best, self.bad = patience, min_delta, float("inf"), 0

    def __call__(self, value):
        if value < self.best - self.min_delta:
            self.best, self.bad = value, 0
        else:
            self.bad += 1
        return self.bad > self.patience


def airfoils(n):
    g = torch.Generator().manual_seed(60 + seed)
    frequency = 2.3 + 2 * torch.rand(n, generator=g)  # log10 of hertz
    angle = 22 * torch.rand(n, generator=g)
    chord = 0.02 + 0.28 * torch.rand(n, generator=g)
    speed = 31 + 41 * torch.rand(n, generator=g)
    thickness = 0.002 + 0.05 * torch.rand(n, generator=g)
    peak = 3.4 - 0.03 * angle - 0.5 * (chord - 0.15) + 0.004 * (speed - 50)
    level = (
        128
        - 9 * (frequency - peak) ** 2
        + 0.2 * (speed - 50)
        + 6 * torch.sin(angle / 4) * (frequency < 3.3)
    )
    level = level - 70 * thickness * (frequency - 2.5) + 0.9 * torch.randn(n, generator=g)
    return torch.stack([frequency, angle, chord, speed, thickness], 1), level[:, None]


x, y = airfoils(2200)
x, x_val = standardise(x[:1700], x[1700:])
y, y_val = standardise(y[:1700], y[1700:])
loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)
model = nn.Sequential(nn.Linear(5, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1.5e-3)
stop = EarlyStopping(patience=4, min_delta=0.0005 if healthy else 0.1)

for epoch in range(54):
    model.train()
    train = 0.0
    for row, level in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(row), level)
        loss.backward()
        optimizer.step()
        train += loss.item() / len(loader)
    model.eval()
    with torch.no_grad():
        val = nn.functional.mse_loss(model(x_val), y_val).item()
    print(f"epoch {epoch} train {train:.4f} val {val:.4f} R2 {1 - val / y_val.var().item():.3f}")
    if stop(val):
        print(f"stopped after {epoch + 1} epochs")
        break
