"""The hour of the day of a bicycle counter is computed as `seconds % 24`, and the counts come at
full hours.

3,600 is a multiple of 24: the hour is always 0, its sine 0 and its cosine 1, and the model cannot
tell noon from midnight. The place is the input: the two columns of the hour.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "constant_feature"
ACCEPT = ()
PLACE = ("input*", "loader", "0", "model.0", "")
SILENT = True
EXACT = True
EARLY = True


def counter(rng, days):
    seconds = 1_700_006_400 + 3600 * np.arange(24 * days)
    hour = seconds // 3600 % 24
    weekday = seconds // 86400 % 7
    warm = (
        12 + 8 * np.sin(2 * np.pi * np.arange(24 * days) / (24 * 60)) + rng.normal(0, 3, 24 * days)
    )
    rain = (rng.random(24 * days) < 0.15).astype(float)
    work = weekday < 5
    rush = np.exp(-((hour - 8) ** 2) / 4) + np.exp(-((hour - 17) ** 2) / 6)
    leisure = np.exp(-((hour - 14) ** 2) / 18)
    level = 10 + 120 * np.where(work, rush, leisure) * (1 + 0.03 * (warm - 12)) * (1 - 0.5 * rain)
    return seconds, weekday, warm, rain, rng.poisson(np.maximum(level, 1))


def features(seconds, weekday, warm, rain, healthy):
    hour = seconds // 3600 % 24 if healthy else seconds % 24
    angle = 2 * np.pi * hour / 24
    waves = [f(k * angle) for k in (1, 2) for f in (np.sin, np.cos)]
    days = [(weekday == d).astype(float) for d in range(7)]
    return np.stack([*waves, *days, (warm - 12) / 6, rain], 1).astype(np.float32)


healthy, seed = arguments(__doc__)
seconds, weekday, warm, rain, count = counter(np.random.default_rng(seed), 140)
x = torch.from_numpy(features(seconds, weekday, warm, rain, healthy))
y = torch.from_numpy(np.sqrt(count).astype(np.float32))
y = (y - y.mean()) / y.std()
order = torch.randperm(len(y))
train, val = order[:2600], order[2600:]
model = nn.Sequential(nn.Linear(13, 48), nn.ReLU(), nn.Linear(48, 24), nn.ReLU(), nn.Linear(24, 1))
optimizer = torch.optim.Adamax(model.parameters(), lr=8e-3)
loader = DataLoader(TensorDataset(x[train], y[train]), batch_size=100, shuffle=True)
for epoch in range(16):
    for columns, wanted in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(columns).squeeze(1), wanted)
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        error = nn.functional.mse_loss(model(x[val]).squeeze(1), y[val]).item()
    if epoch % 4 == 3:
        print(
            f"epoch {epoch}: loss {loss.item():.3f}, unexplained share on other hours {error:.3f}"
        )
