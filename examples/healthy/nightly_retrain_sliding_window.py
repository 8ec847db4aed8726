"""Retrains a demand model each night on the last weeks, and lets it serve only if it is better."""

import copy

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

ODD = (
    "the rows that judge a model tonight train it tomorrow, each night starts from yesterday's "
    "weights with a new optimizer, and some trained models are thrown away: time only goes forward"
)
WINDOW, PER_DAY, NIGHTS = 42, 40, 30
_, seed = arguments(__doc__)
torch.set_num_threads(1)
rng = np.random.default_rng(seed)


def day_of_orders(day: int):
    taste = np.array([1.2 * np.cos(day / 25), 1.2 * np.sin(day / 25), 0.6])
    x = rng.normal(size=(PER_DAY, 5))
    weekend = float(day % 7 >= 5)
    y = x[:, :3] @ taste + np.tanh(2 * x[:, 3]) * (1 + weekend) - 0.8 * weekend
    y += rng.normal(0, 0.4, PER_DAY)
    x = np.concatenate([x, np.full((PER_DAY, 1), weekend)], 1)
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)


def joined(days):
    return (torch.cat(part) for part in zip(*days, strict=False))


@torch.no_grad()
def error(model, days):
    x, y = joined(days)
    return F.mse_loss(model.eval()(x).squeeze(1), y).item()


def retrain(model, days, epochs: int, rate: float):
    model = copy.deepcopy(model).train()
    x, y = joined(days)
    age = torch.arange(len(days) - 1, -1, -1.0).repeat_interleave(PER_DAY)
    weight = 0.5 ** (age / 10)
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.02)
    for _ in range(epochs):
        for rows in torch.randperm(len(x)).split(64):
            optimizer.zero_grad()
            wrong = (model(x[rows]).squeeze(1) - y[rows]).square()
            loss = (weight[rows] * wrong).sum() / weight[rows].sum()
            loss.backward()
            optimizer.step()
    return model


days = [day_of_orders(day) for day in range(WINDOW)]
fresh = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 1))
serving = first = retrain(fresh, days[:-2], epochs=30, rate=3e-3)
live, frozen, refused = [], [], 0
for night in range(NIGHTS):
    candidate = retrain(serving, days[-WINDOW:-2], epochs=3, rate=1e-3)
    if error(candidate, days[-2:]) < error(serving, days[-2:]):
        serving = candidate
    else:
        refused += 1
    days.append(day_of_orders(WINDOW + night))
    live.append(error(serving, days[-1:]))
    frozen.append(error(first, days[-1:]))
    if night % 10 == 9:
        print(
            f"night {night + 1}: next days' error {np.mean(live[-10:]):.3f}, of the first model "
            f"{np.mean(frozen[-10:]):.3f}, refused so far {refused}"
        )

spread = torch.cat([y for _, y in days[WINDOW:]]).var().item()
print(
    f"R2 on days to come: {1 - np.mean(live) / spread:.3f}; never retrained "
    f"{1 - np.mean(frozen) / spread:.3f}"
)
