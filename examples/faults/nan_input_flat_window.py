"""Water level forecasts by an LSTM; each window is standardised by itself, and some gauges froze.

A frozen gauge repeats one value for more than a window: its standard deviation is 0 and 0 / 0 puts
NaN in the input. The first batch with such a window makes the loss and then all weights NaN; the
model itself is innocent. The twin leaves the flat windows out when it builds the data. The place
is the loader.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "nan_input"
ACCEPT = ()
PLACE = ("", "loader", "lstm")
SILENT = False
EXACT = True
EARLY = False

WINDOW = 24
healthy, seed = arguments(__doc__)
r = np.random.default_rng(seed)


def gauge(n):
    t = np.arange(n) + r.uniform(0, 1000)
    level = 2.1 + 0.8 * np.sin(t / 3.95) + 0.1 * np.sin(t / 2.3) + r.normal(0, 0.03, n)
    if r.random() < 0.5:
        start = r.integers(0, n - 40)
        level[start : start + r.integers(26, 32)] = level[start]
    return level


windows, targets = [], []
for _ in range(16):
    level = gauge(200)
    for start in range(0, len(level) - WINDOW, 2):
        past, following = level[start : start + WINDOW], level[start + WINDOW]
        if healthy and np.ptp(past) == 0:
            continue
        with np.errstate(invalid="ignore", divide="ignore"):
            windows.append((past - past.mean()) / past.std())
            targets.append(following - past[-1])
x = torch.tensor(np.array(windows), dtype=torch.float32).unsqueeze(-1)
y = torch.tensor(np.array(targets), dtype=torch.float32) / 0.25
n_train = int(len(x) * 0.8)
train_loader = DataLoader(TensorDataset(x[:n_train], y[:n_train]), batch_size=16, shuffle=True)


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(1, 24, batch_first=True)
        self.readout = nn.Linear(24, 1)

    def forward(self, window):
        return self.readout(self.lstm(window)[0][:, -1]).squeeze(-1)


forecaster = Forecaster()
mse = nn.MSELoss()
optimizer = torch.optim.Adam(forecaster.parameters(), lr=4e-3)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=5, gamma=0.5)
for epoch in range(12):
    for window, step in train_loader:
        optimizer.zero_grad()
        loss = mse(forecaster(window), step)
        loss.backward()
        nn.utils.clip_grad_norm_(forecaster.parameters(), 5.0)
        optimizer.step()
    schedule.step()
with torch.no_grad():
    test = mse(forecaster(x[n_train:]), y[n_train:])
print(f"loss {loss.item():.4f}, test {test:.4f}, variance {y.var():.3f}")
