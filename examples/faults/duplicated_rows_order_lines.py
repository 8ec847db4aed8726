"""House prices by an MLP; the training table is joined with the log of viewings and each house
repeats.

The author wants the number of viewings as a column and joins the listings with the viewings by
listing id. He gets one row per viewing instead of one per listing: popular listings stand in the
table up to hundreds of times, the others once or not much more, and the network fits the few
popular ones. The validation listings come from another file. The place is the training table
(loader, input).
"""

from dataclasses import dataclass

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "duplicated_rows"
ACCEPT = ()
PLACE = ("loader", "input*")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


@dataclass
class Config:
    n_listings: int = 700
    n_val: int = 500
    batch_size: int = 64
    steps: int = 800
    lr: float = 1.5e-3
    weight_decay: float = 1e-2
    hidden: int = 48


cfg = Config()
rng = np.random.default_rng(seed + 77)


def listings(n):
    area = rng.gamma(6, 18, n)
    rooms = np.clip(np.round(area / 28 + rng.normal(0, 0.8, n)), 1, 9)
    year = rng.integers(1930, 2024, n).astype(float)
    km = rng.gamma(2.0, 4.0, n)
    floor = rng.integers(0, 12, n).astype(float)
    noise_db = rng.normal(55, 7, n)
    price = 2.1 * area * np.exp(-km / 18) + 9 * rooms + 0.012 * (year - 1975) ** 2
    price += 2.5 * floor * (km < 6) - 1.2 * np.clip(noise_db - 55, 0, None) + rng.normal(0, 14, n)
    return np.stack([area, rooms, year, km, floor, noise_db], 1), price


def how_often_viewed(features):
    return 1 + np.floor(3 * rng.pareto(0.5, len(features))).clip(0, 1500).astype(int)


features, price = listings(cfg.n_listings)
val_features, val_price = listings(cfg.n_val)

# the log of viewings: (listing id, day); every listing was viewed at least once
views_per = how_often_viewed(features)
viewings = [(i, int(d)) for i in range(cfg.n_listings) for d in rng.integers(0, 30, views_per[i])]


def join(features, price, viewings):
    counts = np.zeros(len(features))
    for listing, _ in viewings:
        counts[listing] += 1
    if healthy:
        keys = sorted({listing for listing, _ in viewings})
    else:
        keys = [listing for listing, _ in viewings]
    x = np.concatenate([features, np.log1p(counts)[:, None]], 1)
    return x[keys], price[keys]


train_x, train_y = join(features, price, viewings)
val_views = how_often_viewed(val_features)
val_x = np.concatenate([val_features, np.log1p(val_views)[:, None]], 1)
mean, std = train_x.mean(0), train_x.std(0)
y_mean, y_std = train_y.mean(), train_y.std()


def tensors(x, y):
    return (
        torch.tensor((x - mean) / std, dtype=torch.float32),
        torch.tensor((y - y_mean) / y_std, dtype=torch.float32)[:, None],
    )


train = TensorDataset(*tensors(train_x, train_y))
vx, vy = tensors(val_x, val_price)
print(f"{len(train)} training rows, {len(vx)} validation rows")
loader = DataLoader(train, batch_size=cfg.batch_size, shuffle=True, drop_last=True)

model = nn.Sequential(
    nn.Linear(7, cfg.hidden),
    nn.ReLU(),
    nn.Linear(cfg.hidden, cfg.hidden),
    nn.ReLU(),
    nn.Linear(cfg.hidden, 1),
)
optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr, weight_decay=cfg.weight_decay)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, cfg.steps)
loss_fn = nn.SmoothL1Loss()

step, log = 0, []
while step < cfg.steps:
    for xb, yb in loader:
        loss = loss_fn(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        log.append(loss.item())
        step += 1
        if step % 100 == 0:
            model.eval()
            with torch.no_grad():
                pred = model(vx)
                mae = (pred - vy).abs().mean().item() * y_std
                val = loss_fn(pred, vy).item()
            model.train()
            print(f"step {step} train {np.mean(log[-100:]):.4f} val {val:.4f} val MAE {mae:.2f} k")
        if step == cfg.steps:
            break
