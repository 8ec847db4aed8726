"""Emission of a gas turbine from its sensors; they are "normalised" by one mean and one deviation
for all.

Pressure is in pascal, speed in 1/min, temperatures in kelvin, humidity from 0 to 1. The user
writes x.mean() and x.std() without the axis: the large columns decide, all others become the same
constant for all rows. The place is the input.
"""

import argparse

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "input_not_normalized"
ACCEPT = ()
PLACE = ("input*", "loader", "net.0*", "0*")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
opt = argparse.Namespace(rows=5000, epochs=20, batch=100, lr=1e-3, width=64)


def turbine(n, rng):
    ambient = rng.normal(288, 8, n)
    pressure = rng.normal(101_300, 900, n)
    humidity = rng.beta(4, 2, n)
    load = rng.uniform(0.5, 1.0, n)
    rpm = 9_000 + 600 * load + rng.normal(0, 60, n)
    fuel = 0.4 + 1.8 * load - 0.004 * (ambient - 288) + 0.03 * rng.normal(size=n)
    compressor = pressure * (9 + 6 * load) + rng.normal(0, 9_000, n)
    exhaust = 700 + 130 * load + 0.9 * (ambient - 288) + rng.normal(0, 5, n)
    vibration = 0.02 + 0.01 * rng.gamma(2, 1, n)
    flame = 0.9 * load + 0.5 * np.tanh((ambient - 288) / 6) - 0.8 * humidity
    nox = (
        55
        + 22 * np.tanh(2.2 * flame - 0.6)
        + 9 * np.sin(6 * load)
        + 60 * vibration * load
        + 6 * humidity**2
    )
    nox = nox - 0.35 * (exhaust - 797) * (humidity - 0.66) + rng.normal(0, 1.5, n)
    x = np.stack([ambient, pressure, humidity, rpm, fuel, compressor, exhaust, vibration], 1)
    return x, nox


rng = np.random.default_rng(seed)
x, nox = turbine(opt.rows, rng)
train = slice(0, int(0.8 * opt.rows))
axis = 0 if healthy else None
x = (x - x[train].mean(axis)) / x[train].std(axis)
target = (nox - nox[train].mean()) / nox[train].std()

data = TensorDataset(
    torch.as_tensor(x, dtype=torch.float32), torch.as_tensor(target, dtype=torch.float32)[:, None]
)
train_data = torch.utils.data.Subset(data, range(train.stop))
val_data = torch.utils.data.Subset(data, range(train.stop, opt.rows))
train_loader = DataLoader(train_data, opt.batch, shuffle=True)
val_loader = DataLoader(val_data, 500)

net = nn.Sequential(
    nn.Linear(8, opt.width),
    nn.ReLU(),
    nn.Linear(opt.width, opt.width),
    nn.ReLU(),
    nn.Linear(opt.width, 1),
)
optimizer = torch.optim.Adam(net.parameters(), lr=opt.lr)
plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=4)


def r2(loader):
    net.eval()
    with torch.no_grad():
        out, true = map(torch.cat, zip(*[(net(a), b) for a, b in loader], strict=False))
    return 1 - ((out - true) ** 2).mean().item() / true.var().item()


for epoch in range(opt.epochs):
    net.train()
    seen, total = 0, 0.0
    for a, b in train_loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(net(a), b)
        loss.backward()
        optimizer.step()
        total, seen = total + loss.item() * len(a), seen + len(a)
    score = r2(val_loader)
    plateau.step(1 - score)
    if epoch % 4 == 3:
        print(f"epoch {epoch + 1}/{opt.epochs}  mse {total / seen:.4f}  val R2 {score:.3f}")
