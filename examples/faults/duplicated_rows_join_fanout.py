"""Delivery times of parcels from orders joined with scan events; the join multiplies the rows of
orders with many scans.

The training table is `orders JOIN scans` without a DISTINCT, so each order stands in it once per
scan (1 to 60 times, all copies alike), and the odd parcels that travel in circles rule the
training; the validation orders were never joined. The place is the input (the table). The twin
keeps each order once, with as many steps.
"""

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "duplicated_rows"
ACCEPT = ("train_val_mismatch", "repeated_batch")
PLACE = ("input*", "loader")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)

DEPOTS, CARRIERS, N_TRAIN, N_VAL = 40, 7, 1500, 1500
rng = np.random.default_rng(seed)
xy = rng.uniform(0, 100, (DEPOTS, 2))
slow = rng.gamma(3, 0.25, DEPOTS)
speed = rng.uniform(0.8, 1.6, CARRIERS)


def make_orders(n):
    src, dst = rng.integers(0, DEPOTS, n), rng.integers(0, DEPOTS, n)
    carrier = rng.choice(CARRIERS, n, p=[0.3, 0.2, 0.15, 0.15, 0.1, 0.05, 0.05])
    weight, hour = rng.gamma(1.5, 4, n), rng.uniform(0, 24, n)
    weekday, express = rng.integers(0, 7, n), rng.random(n) < 0.2
    dist = np.linalg.norm(xy[src] - xy[dst], axis=1)
    hours = (
        6
        + dist / speed[carrier] * 0.4
        + 6 * slow[src]
        + 6 * slow[dst]
        + 0.15 * weight
        + 8 * (weekday >= 5)
    )
    hours = hours * np.where(express, 0.6, 1.0) + 5 * (hour > 16)
    lost = rng.random(n) < 0.04  # sorted wrongly somewhere and scanned again and again
    hours = hours * rng.lognormal(0, 0.1, n) + np.where(lost, rng.gamma(3, 20, n), 0)
    scans = 1 + rng.poisson(1.2, n) + np.where(lost, rng.integers(20, 60, n), 0)
    x = np.column_stack(
        [
            xy[src],
            xy[dst],
            np.log1p(weight),
            np.sin(hour / 24 * 2 * np.pi),
            hour / 24,
            express,
            weekday >= 5,
        ]
    )
    ids = np.column_stack([src, dst, carrier, weekday])
    return x.astype(np.float32), ids, np.log(hours).astype(np.float32), scans


def join_scans(order_keys, scans):
    """One row per scan event, as SQL gives them."""
    events = np.repeat(order_keys, scans)
    return events[rng.permutation(len(events))]


x, ids, y, scans = make_orders(N_TRAIN)
x_val, ids_val, y_val, _ = make_orders(N_VAL)
table = join_scans(np.arange(N_TRAIN), scans)
if healthy:
    table = np.unique(table)
mean, std = x.mean(0), x.std(0)
y_mean, y_std = y.mean(), y.std()
X = torch.tensor((x[table] - mean) / std)
IDS = torch.tensor(ids[table])
Y = torch.tensor((y[table] - y_mean) / y_std)
X_val, IDS_val, Y_val = (
    torch.tensor((x_val - mean) / std),
    torch.tensor(ids_val),
    torch.tensor((y_val - y_mean) / y_std),
)
print(f"{N_TRAIN} orders, table of {len(table)} rows")


class ETA(nn.Module):
    def __init__(self):
        super().__init__()
        self.depot = nn.Embedding(DEPOTS, 6)
        self.carrier = nn.Embedding(CARRIERS, 4)
        self.weekday = nn.Embedding(7, 3)
        self.mlp = nn.Sequential(
            nn.Linear(9 + 6 + 6 + 4 + 3, 96),
            nn.SiLU(),
            nn.Dropout(0.1),
            nn.Linear(96, 48),
            nn.SiLU(),
            nn.Linear(48, 1),
        )

    def forward(self, x, ids):
        e = [
            self.depot(ids[:, 0]),
            self.depot(ids[:, 1]),
            self.carrier(ids[:, 2]),
            self.weekday(ids[:, 3]),
        ]
        return self.mlp(torch.cat([x, *e], 1)).squeeze(1)


model = ETA()
opt = torch.optim.AdamW(model.parameters(), lr=1.5e-3, weight_decay=3e-2)
STEPS, BATCH, EVERY = 900, 64, 100
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, STEPS, eta_min=1e-5)
huber = nn.SmoothL1Loss(beta=0.5)


def endless(n):
    while True:
        yield from torch.randperm(n).split(BATCH)


losses = []
for step, rows in zip(range(1, STEPS + 1), endless(len(Y)), strict=False):
    model.train()
    loss = huber(model(X[rows], IDS[rows]), Y[rows])
    opt.zero_grad()
    loss.backward()
    opt.step()
    sched.step()
    losses.append(loss.item())
    if step % EVERY == 0:
        model.eval()
        with torch.no_grad():
            pred = model(X_val, IDS_val)
        hours, true = (pred * y_std + y_mean).exp(), (Y_val * y_std + y_mean).exp()
        print(
            f"step {step} loss {np.mean(losses[-EVERY:]):.4f} val huber {huber(pred, Y_val):.4f} "
            f"MAE {(hours - true).abs().mean():.2f} h median error {(hours - true).abs().median():.2f} h"  # noqa: E501
        )
