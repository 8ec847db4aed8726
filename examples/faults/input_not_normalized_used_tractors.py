"""Prices of used tractors from year, hours, power and weight, which enter just as they are listed.

The price was standardised, because the loss looked huge. The columns were not: the year is some
2,010, the hours are up to 15,000 and the kilograms up to 12,000, next to a few columns of 0 or 1.
The place is the input. The twin standardises the columns by the training part.
"""

import numpy as np
import torch
from data import arguments, standardise
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "input_not_normalized"
ACCEPT = ()
PLACE = ("input*", "loader", "0")
SILENT = True
EXACT = False
EARLY = True


def listings(seed, n=2400):
    r = np.random.default_rng(seed)
    year = r.integers(1985, 2024, n)
    hours = ((2024 - year) * r.gamma(4, 90, n)).clip(10, 16000)
    power = r.choice([55, 75, 95, 120, 155, 200, 270], n) + r.integers(-8, 9, n)
    weight = 1800 + 38 * power + r.normal(0, 500, n)
    loader, cabin, dealer = (r.random(n) < p for p in (0.4, 0.85, 0.6))
    value = 11 + 0.0065 * power - 0.045 * (2024 - year) - hours / 22000
    value = value + 0.12 * loader + 0.15 * cabin + 0.08 * dealer + r.normal(0, 0.08, n)
    x = np.stack([year, hours, power, weight, loader, cabin, dealer], 1)
    return torch.tensor(x, dtype=torch.float32), torch.tensor(value, dtype=torch.float32)


def evaluate(model, loader):
    model.eval()
    with torch.no_grad():
        errors = [(model(x).squeeze(1) - y).abs() for x, y in loader]
    model.train()
    return torch.cat(errors).mean().item()


def main():
    healthy, seed = arguments(__doc__)
    x, y = listings(seed)
    y = (y - y[:1900].mean()) / y[:1900].std()
    if healthy:
        head, tail = standardise(x[:1900], x[1900:])
        x = torch.cat([head, tail])
    train = DataLoader(TensorDataset(x[:1900], y[:1900]), batch_size=32, shuffle=True)
    val = DataLoader(TensorDataset(x[1900:], y[1900:]), batch_size=250)
    model = nn.Sequential(
        nn.Linear(7, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(12):
        total = 0
        for xb, yb in train:
            loss = nn.functional.mse_loss(model(xb).squeeze(1), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        if epoch % 3 == 2:
            print(f"{epoch + 1:2d} mse {total / len(train):.3f} val mae {evaluate(model, val):.3f}")


if __name__ == "__main__":
    main()
