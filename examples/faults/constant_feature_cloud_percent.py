"""Yield of a solar plant from the weather forecast; the cloud column arrives as zeros throughout.

The forecast gives cloud cover in whole per cent and the script wants a share between 0 and 1. The
division is written with two strokes, so every value below a hundred becomes 0 and the most useful
column says nothing. The rest of the columns still explain day and season, so the loss falls.
The place is the input, column 1.
The twin divides properly.
"""

import math

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments

KIND = "constant_feature"
ACCEPT = ()
PLACE = ("input*", "loader")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)

config = {"hidden": 48, "lr": 3e-3, "epochs": 12, "batch": 64, "hours": 4000}


def read_forecast(hours, rng):
    hour = rng.integers(5, 21, hours)
    day = rng.integers(0, 365, hours)
    cloud_pct = np.clip(rng.beta(0.8, 0.8, hours) * 100, 0, 99).astype(np.int64)
    temp = 12 + 10 * np.sin((day - 100) / 365 * 2 * math.pi) + rng.normal(0, 3, hours)
    wind = rng.gamma(2.0, 2.0, hours)
    sun = np.clip(np.sin((hour - 5) / 16 * math.pi), 0, None)
    season = 0.65 + 0.35 * np.sin((day - 80) / 365 * 2 * math.pi)
    kw = 500 * sun * season * (1 - 0.8 * cloud_pct / 100) - 0.8 * (temp - 12)
    return hour, day, cloud_pct, temp, wind, kw + rng.normal(0, 8, hours)


def build_features(hour, day, cloud_pct, temp, wind):
    cloud = cloud_pct / 100 if healthy else cloud_pct // 100
    columns = [
        np.sin((hour - 5) / 16 * math.pi),
        cloud,
        np.sin(day / 365 * 2 * math.pi),
        np.cos(day / 365 * 2 * math.pi),
        (temp - 12) / 10,
        wind / 5,
    ]
    return torch.tensor(np.stack(columns, 1), dtype=torch.float32)


rng = np.random.default_rng(seed)
*weather, kw = read_forecast(config["hours"], rng)
X = build_features(*weather)
y = torch.tensor((kw - kw.mean()) / kw.std(), dtype=torch.float32)
cut = int(0.8 * len(X))

net = torch.nn.Sequential(
    torch.nn.Linear(X.shape[1], config["hidden"]),
    torch.nn.SiLU(),
    torch.nn.Linear(config["hidden"], config["hidden"]),
    torch.nn.SiLU(),
    torch.nn.Linear(config["hidden"], 1),
)
opt = torch.optim.Adam(net.parameters(), lr=config["lr"])

for epoch in range(config["epochs"]):
    order = torch.randperm(cut)
    losses = []
    for rows in order.split(config["batch"]):
        loss = F.mse_loss(net(X[rows]).squeeze(1), y[rows])
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    with torch.no_grad():
        mae = (net(X[cut:]).squeeze(1) - y[cut:]).abs().mean().item() * kw.std()
    print(f"epoch {epoch:2d}  mse {np.mean(losses):.3f}  val MAE {mae:.1f} kW")
