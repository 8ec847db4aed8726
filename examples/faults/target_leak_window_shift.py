"""A GRU forecasts blood glucose an hour ahead from a sensor; the input window is shifted so that
it ends with the value to forecast.

The horizon is added to the window's start as well as to the target's place, so the last sensor
value of the window is the target. The validation shares the mistake and looks brilliant; the
replay at the end, with windows as the device has them, shows the harm. The place is the input
(column glucose of the last time step).
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "target_leak"
ACCEPT = ("future_leak",)
PLACE = ("input*", "loader", "loop")
SILENT = True
EXACT = True
EARLY = False
healthy, seed = arguments(__doc__)


@dataclass
class Conf:
    window: int = 24
    horizon: int = 12
    hidden: int = 40
    epochs: int = 7
    lr: float = 3e-3
    batch: int = 96


def patient(rng, n):
    glucose, carbs, insulin = np.zeros(n), np.zeros(n), np.zeros(n)
    level, act, food = 120.0, 0.0, 0.0
    sensitivity = rng.uniform(0.8, 1.2)
    for t in range(n):
        if rng.random() < 0.02:
            carbs[t] = rng.uniform(20, 80)
            insulin[t] = carbs[t] / 10 * rng.uniform(0.5, 1.4)
        food = 0.92 * food + 0.06 * carbs[t]
        act = 0.95 * act + 0.035 * 10 * insulin[t] * sensitivity
        level += food - act + 0.03 * (120 - level) + rng.normal(0, 2.0)
        level = min(max(level, 45), 380)
        glucose[t] = level
    return np.stack([glucose + rng.normal(0, 2, n), carbs, insulin], 1)


class Windows(Dataset):
    def __init__(self, series, conf, offset):
        xs, ys = [], []
        for s in series:
            for start in range(0, len(s) - conf.window - conf.horizon, 3):
                first = start + offset
                xs.append(s[first : first + conf.window])
                ys.append(s[start + conf.window + conf.horizon - 1, 0])
        self.x = torch.tensor(np.stack(xs), dtype=torch.float32)
        self.y = torch.tensor(np.array(ys), dtype=torch.float32)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


class Forecaster(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.rnn = nn.GRU(3, hidden, batch_first=True)
        self.head = nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 1))

    def forward(self, x):
        out, _ = self.rnn(x)
        return self.head(out[:, -1]).squeeze(-1)


def rmse(model, data, std):
    model.eval()
    with torch.no_grad():
        return std * math.sqrt(nn.functional.mse_loss(model(data.x), data.y).item())


conf = Conf()
rng = np.random.default_rng(seed)
people = [patient(rng, 1000) for _ in range(14)]
stacked = np.concatenate(people[:10])
mean, std = stacked.mean(0), stacked.std(0)
people = [(p - mean) / std for p in people]
offset = 0 if healthy else conf.horizon
train, val = Windows(people[:10], conf, offset), Windows(people[10:], conf, offset)
replay = Windows(people[10:], conf, 0)
loader = DataLoader(train, conf.batch, shuffle=True, drop_last=True)
model = Forecaster(conf.hidden)
optimizer = torch.optim.Adam(model.parameters(), lr=conf.lr)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, conf.epochs)
for epoch in range(conf.epochs):
    model.train()
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    scheduler.step()
    print(
        f"epoch {epoch + 1} train {loss.item():.4f} val RMSE {rmse(model, val, std[0]):.2f} mg/dL"
    )
print(
    f"replay on device: RMSE {rmse(model, replay, std[0]):.2f} mg/dL (spread of the target {std[0]:.1f})"  # noqa: E501
)
