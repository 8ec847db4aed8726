"""A multi-horizon forecaster of bike rentals with Adam; the two betas are in the wrong order.

The yaml-like config names them beta2 and beta1, and the tuple is put together in that order:
(0.999, 0.9). The momentum has a memory of a thousand steps, the second moment one of ten; the
steps circle around the minimum. The place is the optimizer.
"""

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "bad_optimizer_settings"
ACCEPT = ()
PLACE = ("optimizer",)
SILENT = False
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

CONFIG = {
    "data": {"stations": 20, "days": 120, "past": 36, "ahead": 8},
    "model": {"channels": 32, "station_dim": 6},
    "optim": {"name": "Adam", "lr": 5e-4, "beta2": 0.999, "beta1": 0.9, "clip": 1.0},
    "fit": {"batch_size": 64, "epochs": 7},
}


def rentals(stations, days, seed):
    r = np.random.default_rng(seed)
    t = np.arange(days * 24)
    rain = np.repeat(r.random(len(t) // 6 + 1) < 0.15, 6)[: len(t)]
    rows = []
    for _ in range(stations):
        peaks, size = r.normal([8, 17.5], 0.7), r.uniform(0.6, 1.6)
        shape = sum(np.exp(-(((t % 24) - p) ** 2) / r.uniform(3, 7)) for p in peaks)
        weekday = np.where((t // 24) % 7 < 5, 1.0, r.uniform(0.3, 0.8))
        mood = np.zeros(len(t))
        for k in range(1, len(t)):
            mood[k] = 0.9 * mood[k - 1] + r.normal(0, 0.15)
        rate = size * 20 * (0.1 + shape) * weekday * np.where(rain, 0.4, 1.0) * np.exp(0.5 * mood)
        rows.append(np.log1p(r.poisson(rate)))
    return np.stack(rows).astype(np.float32), rain.astype(np.float32)


def windows(series, rain, first, last, past, ahead, stride):
    hist, clock, target, station = [], [], [], []
    for s in range(len(series)):
        for a in range(first, last - past - ahead, stride):
            hist.append(np.stack([series[s, a : a + past], rain[a : a + past]]))
            now = a + past
            clock.append(
                [np.sin(now * np.pi / 12), np.cos(now * np.pi / 12), float((now // 24) % 7 < 5)]
            )
            target.append(series[s, now : now + ahead])
            station.append(s)
    return (
        torch.from_numpy(np.stack(hist)),
        torch.tensor(clock, dtype=torch.float32),
        torch.tensor(station),
        torch.from_numpy(np.stack(target)),
    )


class RentalNet(nn.Module):
    def __init__(self, channels, station_dim, stations, ahead):
        super().__init__()
        self.station = nn.Embedding(stations, station_dim)
        self.conv1 = nn.Conv1d(2, channels, 5, padding=2)
        self.conv2 = nn.Conv1d(channels, channels, 5, stride=2, padding=2)
        self.conv3 = nn.Conv1d(channels, channels, 5, stride=2, padding=2)
        self.head = nn.Sequential(
            nn.Linear(9 * channels + 3 + station_dim, 96), nn.ReLU(), nn.Linear(96, ahead)
        )

    def forward(self, hist, clock, station):
        h = F.relu(self.conv1(hist))
        h = F.relu(self.conv2(h))
        h = F.relu(self.conv3(h)).flatten(1)
        return self.head(torch.cat([h, clock, self.station(station)], 1))


def make_optimizer(model, optim):
    betas = [
        v for k, v in (sorted(optim.items()) if healthy else optim.items()) if k.startswith("beta")
    ]
    return getattr(torch.optim, optim["name"])(
        model.parameters(), lr=optim["lr"], betas=tuple(betas)
    )


d = CONFIG["data"]
series, rain = rentals(d["stations"], d["days"], seed + 17)
edge = 95 * 24
mean, std = series[:, :edge].mean(), series[:, :edge].std()
series = (series - mean) / std
train = TensorDataset(*windows(series, rain, 0, edge, d["past"], d["ahead"], 7))
val = windows(series, rain, edge, d["days"] * 24, d["past"], d["ahead"], 11)
loader = DataLoader(train, CONFIG["fit"]["batch_size"], shuffle=True, drop_last=True)
model = RentalNet(
    CONFIG["model"]["channels"], CONFIG["model"]["station_dim"], d["stations"], d["ahead"]
)
optimizer = make_optimizer(model, CONFIG["optim"])
for epoch in range(CONFIG["fit"]["epochs"]):
    model.train()
    losses = []
    for hist, clock, station, target in loader:
        loss = F.mse_loss(model(hist, clock, station), target)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), CONFIG["optim"]["clip"])
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        err = model(*val[:3]) - val[3]
    print(
        f"epoch {epoch} train mse {np.mean(losses):.4f} val mse {err.pow(2).mean():.4f} mae {err.abs().mean():.4f}"  # noqa: E501
    )
