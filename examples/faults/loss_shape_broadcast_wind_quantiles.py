"""A net forecasts three quantiles of a wind park's power by a hand-written pinball loss whose
target is broadcast over the whole batch.

The target is (batch, 1) already and gets one more axis, so that target - quantiles is (batch,
batch, 3): every forecast is compared with everyone's target and the net learns the climatology.
No warning comes from plain arithmetic. The place is the loss.
"""

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "loss_shape_broadcast"
ACCEPT = ()
PLACE = ("loss",)
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

QUANTILES = (0.1, 0.5, 0.9)
config = {"hours": 8000, "batch": 96, "epochs": 14, "lr": 3e-3, "width": 64, "ema": 0.98}


class PinballLoss(nn.Module):
    def __init__(self, quantiles):
        super().__init__()
        self.register_buffer("q", torch.tensor(quantiles))

    def forward(self, pred, target):
        error = (target if healthy else target.unsqueeze(-1)) - pred
        return torch.maximum(self.q * error, (self.q - 1) * error).mean()


class QuantileNet(nn.Module):
    def __init__(self, d, width):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(d, width), nn.ELU(), nn.Linear(width, width), nn.ELU())
        self.median, self.spread = nn.Linear(width, 1), nn.Linear(width, 2)

    def forward(self, x):
        h = self.body(x)
        m, s = self.median(h), nn.functional.softplus(self.spread(h))
        return torch.cat([m - s[:, :1], m, m + s[:, 1:]], 1)


def park(hours, rng):
    speed = np.zeros(hours)
    for i in range(1, hours):
        speed[i] = 0.95 * speed[i - 1] + rng.normal(0, 0.31)
    direction = np.cumsum(rng.normal(0, 0.15, hours))
    forecast = speed + rng.normal(0, 0.25, hours)
    ahead = np.roll(forecast, -1)
    power = 1 / (1 + np.exp(-2.2 * speed + 0.4 * np.cos(direction))) + rng.normal(0, 1, hours) * (
        0.02 + 0.05 * np.exp(-(speed**2))
    )
    x = np.stack([forecast, ahead, np.roll(forecast, 1), np.sin(direction), np.cos(direction)], 1)[
        1:-1
    ]
    return torch.tensor(x, dtype=torch.float32), torch.tensor(
        power[1:-1, None], dtype=torch.float32
    )


def evaluate(model, x, y):
    model.eval()
    with torch.no_grad():
        p = model(x).numpy()
    y = y.numpy()
    pin = np.mean(
        [
            np.maximum(q * (y[:, 0] - p[:, i]), (q - 1) * (y[:, 0] - p[:, i])).mean()
            for i, q in enumerate(QUANTILES)
        ]
    )
    inside = np.mean((y[:, 0] > p[:, 0]) & (y[:, 0] < p[:, 2]))
    return pin, np.abs(y[:, 0] - p[:, 1]).mean(), inside


x, y = park(config["hours"], np.random.default_rng(17 + seed))
order = torch.randperm(len(x) // 40)[:, None] * 40 + torch.arange(40)  # blocks of 40 hours
cut = int(0.8 * len(order))
train, val = order[:cut].flatten(), order[cut:].flatten()
mean, std = x[train].mean(0), x[train].std(0)
x = (x - mean) / std
y = (y - y[train].mean()) / y[train].std()

model = QuantileNet(x.shape[1], config["width"])
shadow = torch.optim.swa_utils.AveragedModel(
    model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(config["ema"])
)
criterion = PinballLoss(QUANTILES)
optimizer = torch.optim.RAdam(model.parameters(), lr=config["lr"], weight_decay=1e-5)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(
    optimizer, config["epochs"] * (len(train) // config["batch"] + 1)
)
for epoch in range(1, config["epochs"] + 1):
    model.train()
    total = []
    for rows in train[torch.randperm(len(train))].split(config["batch"]):
        optimizer.zero_grad()
        loss = criterion(model(x[rows]), y[rows])
        loss.backward()
        nn.utils.clip_grad_value_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        shadow.update_parameters(model)
        total.append(loss.item())
    if epoch % 2 == 0:
        pin, mae, inside = evaluate(shadow, x[val], y[val])
        print(
            f"epoch {epoch} loss {np.mean(total):.4f} val pinball {pin:.4f} mae {mae:.4f} coverage {inside:.3f}"  # noqa: E501
        )
