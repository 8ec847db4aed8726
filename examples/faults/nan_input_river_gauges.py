"""Level of a river tomorrow from the gauges upstream, of which some did not report.

The file of the water office leaves a field empty when a gauge was silent, and the reader makes
NaN of it. The means for the scaling were taken with nanmean, so that nothing was noticed; then
the holes go into the network, and after the first batches all weights are NaN.
The place is the input.
The twin puts the column's mean into the holes and adds columns that say where they were.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "nan_input"
ACCEPT = ()
PLACE = ("input*", "loader")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


def read_gauges(days, rng):
    rain = rng.gamma(0.6, 6.0, (days, 5))
    level = np.zeros((days, 5))
    for t in range(1, days):
        level[t] = 0.85 * level[t - 1] + 0.02 * rain[t]
    tomorrow = level @ np.array([0.5, 0.3, 0.4, 0.2, 0.6]) + 0.05 * rng.normal(size=days)
    table = np.concatenate([level, rain], 1)
    silent = rng.random(table.shape) < 0.004
    table[silent] = np.nan
    return table, tomorrow


class Gauges(Dataset):
    def __init__(self, table, target, mean, std):
        table = (table - mean) / std
        if healthy:
            missing = np.isnan(table)
            table = np.concatenate([np.nan_to_num(table), missing], 1)
        self.x = torch.tensor(table, dtype=torch.float32)
        self.y = torch.tensor(target, dtype=torch.float32)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


rng = np.random.default_rng(seed)
table, target = read_gauges(1500, rng)
mean, std = np.nanmean(table[:1200], 0), np.nanstd(table[:1200], 0)
target = (target - target[:1200].mean()) / target[:1200].std()
train = Gauges(table[:1200], target[:1200], mean, std)
val = Gauges(table[1200:], target[1200:], mean, std)
loader = DataLoader(train, batch_size=32, shuffle=True)

width = train.x.shape[1]
model = nn.Sequential(
    nn.Linear(width, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 1)
)
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
for epoch in range(10):
    model.train()
    losses = []
    for x, y in loader:
        loss = nn.functional.huber_loss(model(x).squeeze(-1), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        error = (model(val.x).squeeze(-1) - val.y).abs().mean().item()
    print(f"epoch {epoch:2d}: loss {np.mean(losses):.4f}, val MAE {error:.4f}")
