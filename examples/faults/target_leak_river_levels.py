"""A forecaster of river levels: the window of past hours ends at the very hour that is to be
forecast.

The user took the slice one step too far, so the last input column is the target; in use, when the
next hour isn't known yet, the last known level stands in its place and the forecast is no better
than repeating it. The place is the input (last column of the window).
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "target_leak"
ACCEPT = ()
PLACE = ("input*", "loader")
SILENT = True
EXACT = True
EARLY = False

healthy, seed = arguments(__doc__)
WINDOW = 24


def river(hours, r):
    """Levels in metres: rain runs off with a delay, and the tide comes in twice a day."""
    rain = r.gamma(0.3, 1.0, hours) * (r.random(hours) < 0.08)
    fast, slow, level = 0.0, 0.0, np.zeros(hours)
    phase = 0.0
    for i in range(hours):
        fast = 0.8 * fast + 0.2 * slow
        slow = 0.9 * slow + rain[i]
        phase += 2 * np.pi / 12.4 + r.normal(0, 0.04)
        level[i] = 2 + 0.5 * fast + 0.5 * np.sin(phase) + r.normal(0, 0.04)
    return torch.tensor(level, dtype=torch.float32)


def windows(level, last):
    """Row i holds the WINDOW levels up to hour i + WINDOW - 1 + last, its target is that of hour i + WINDOW."""  # noqa: E501
    x = torch.stack([level[i + last : i + last + WINDOW] for i in range(len(level) - WINDOW)])
    return x, level[WINDOW:]


level = river(3600, np.random.default_rng(seed))
cut = 2800
level = (level - level[:cut].mean()) / level[:cut].std()
last = 0 if healthy else 1
train = DataLoader(TensorDataset(*windows(level[:cut], last)), batch_size=50, shuffle=True)
x_val, y_val = windows(level[cut:], last)
known = windows(level[cut:], 0)[0]
x_live = known if healthy else torch.cat([known[:, 1:], known[:, -1:]], 1)

model = nn.Sequential(
    nn.Linear(WINDOW, 48), nn.ReLU(), nn.Linear(48, 24), nn.ReLU(), nn.Linear(24, 1)
)
optimizer = torch.optim.Adamax(model.parameters(), lr=3e-3)
criterion = nn.MSELoss()
for epoch in range(15):
    model.train()
    for x, y in train:
        loss = criterion(model(x).squeeze(1), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        val = criterion(model(x_val).squeeze(1), y_val).item()
        live = criterion(model(x_live).squeeze(1), y_val).item()
    print(f"epoch {epoch}: train {loss.item():.4f}, val mse {val:.4f}, mse in use {live:.4f}")
