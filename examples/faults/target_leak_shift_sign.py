"""Load forecasting one hour ahead; a lag feature was shifted with the wrong sign and is the target
itself.

`np.roll(load, -1)` is the next hour, not the last one. Training and validation look far better than
the noise allows (silent); with the features of the day itself the forecast is worse than without
the column. The place is the input. Exact.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "target_leak"
ACCEPT = ()
PLACE = ("input*", "loader", "0*", "")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


def hourly_load(hours, rng):
    t = np.arange(hours)
    day = np.sin(2 * np.pi * (t % 24 - 8) / 24) + 0.5 * np.sin(4 * np.pi * (t % 24) / 24)
    week = np.where((t // 24) % 7 < 5, 0.4, -0.6)
    temperature = 8 * np.sin(2 * np.pi * t / (24 * 45)) + 3 * np.sin(2 * np.pi * (t % 24 - 9) / 24)
    temperature = temperature + rng.normal(0, 1, hours)
    slow = np.zeros(hours)
    for i in range(1, hours):
        slow[i] = 0.9 * slow[i - 1] + rng.normal(0, 0.18)
    return t, day + week + 0.002 * temperature**2 + slow + rng.normal(0, 0.25, hours), temperature


def frame(t, load, temperature, previous):
    columns = {
        "now": load,
        "previous": previous,
        "yesterday": np.roll(load, 23),
        "last_week": np.roll(load, 167),
        "temperature": temperature,
        "sin": np.sin(2 * np.pi * t / 24),
        "cos": np.cos(2 * np.pi * t / 24),
        "weekend": ((t // 24) % 7 >= 5).astype(float),
    }
    return np.stack(list(columns.values()), 1)


rng = np.random.default_rng(seed)
t, load, temperature = hourly_load(24 * 7 * 26, rng)
known = np.roll(load, 1)  # all that is known when one forecasts
x = frame(t, load, temperature, np.roll(load, 1 if healthy else -1))
honest = frame(t, load, temperature, known)
y = np.roll(load, -1)
usable = slice(168, -1)
x, honest, y = x[usable], honest[usable], y[usable]
cut = int(0.75 * len(y))
mean, std = x[:cut].mean(0), x[:cut].std(0)
y_mean, y_std = y[:cut].mean(), y[:cut].std()


def tensor(a):
    return torch.tensor(a, dtype=torch.float32)


x, honest, y = tensor((x - mean) / std), tensor((honest - mean) / std), tensor((y - y_mean) / y_std)
loader = DataLoader(TensorDataset(x[:cut], y[:cut]), batch_size=64, shuffle=True)
model = nn.Sequential(
    nn.Linear(8, 48), nn.ReLU(), nn.Dropout(0.05), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 1)
)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-5)
for epoch in range(10):
    model.train()
    for xb, yb in loader:
        loss = nn.functional.mse_loss(model(xb).squeeze(-1), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        val = nn.functional.mse_loss(model(x[cut:]).squeeze(-1), y[cut:]).item()
        live = nn.functional.mse_loss(model(honest[cut:]).squeeze(-1), y[cut:]).item()
    print(f"epoch {epoch} train {loss.item():.4f} val {val:.4f} (as deployed {live:.4f})")
