"""A river's level is forecast; gaps of the gauge are NaN, and nanmean() and nanstd() scale around
them.

The statistics are fine, so the windows look fine; one in some hundred holds a NaN. The place is the
input. After the first such batch the loss and all weights are NaN (not silent). Exact. The twin
fills a gap with the last level seen.
"""

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "nan_input"
ACCEPT = ()
PLACE = ("input*", "loader")
SILENT = False
EXACT = True
EARLY = False

healthy, seed = arguments(__doc__)
rng = np.random.default_rng(seed)

hours = 3200
rain = rng.gamma(0.15, 2.0, hours)
level = np.zeros(hours)
for t in range(1, hours):
    level[t] = 0.93 * level[t - 1] + 0.25 * rain[t - 1] + 0.15 * rain[max(t - 4, 0)]
level += rng.normal(0, 0.02, hours)
truth = level.copy()
for start in rng.choice(np.arange(100, 2300), 2, replace=False):
    level[start : start + 3] = np.nan  # ice on the sensor
if healthy:
    for t in range(1, hours):
        if np.isnan(level[t]):
            level[t] = level[t - 1]

record = np.stack([rain, level], 1)
record = (record - np.nanmean(record[:2400], 0)) / np.nanstd(record[:2400], 0)
target = (truth - truth[:2400].mean()) / truth[:2400].std()
WINDOW, AHEAD = 12, 4
ends = np.arange(WINDOW, hours - AHEAD)
x = torch.tensor(np.stack([record[e - WINDOW : e] for e in ends]), dtype=torch.float32)
y = torch.tensor(target[ends + AHEAD - 1], dtype=torch.float32)
train, test = ends < 2400 - AHEAD, ends >= 2400 + WINDOW
x_train, y_train = x[train], y[train]
x_test, y_test = x[test], y[test]


class Gauge(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(2, 24, batch_first=True)
        self.out = nn.Linear(24, 1)

    def forward(self, window):
        h, _ = self.lstm(window)
        return self.out(h[:, -1]).squeeze(-1)


def train_one_epoch(model, optimizer):
    model.train()
    losses = []
    for rows in torch.randperm(len(x_train)).split(32):
        optimizer.zero_grad()
        loss = nn.functional.smooth_l1_loss(model(x_train[rows]), y_train[rows])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return np.mean(losses)


def evaluate(model):
    model.eval()
    with torch.no_grad():
        return 1 - (((model(x_test) - y_test) ** 2).mean() / y_test.var()).item()


model = Gauge()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(5):
    loss = train_one_epoch(model, optimizer)
    print(f"epoch {epoch}: train {loss:.4f}, test R2 {evaluate(model):.3f}")
