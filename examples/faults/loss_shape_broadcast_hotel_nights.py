"""Nights booked in hotels by a small network; the output is (n, 1) and the target (n,).

`out - target` of these two shapes is an n by n table of all differences, whose mean square is
smallest when everyone gets the mean. There is no error, only a loss that stays at the variance.
The place is the loss. The twin squeezes the output.
"""

import numpy as np
import torch
from data import arguments, standardise
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "loss_shape_broadcast"
ACCEPT = ()
PLACE = ("loss*", "output*")
SILENT = False
EXACT = True
EARLY = True


def hotels(seed, n=2000):
    r = np.random.default_rng(seed)
    stars, price = r.integers(1, 6, n), r.lognormal(4.5, 0.4, n)
    month, beach, rating = r.integers(0, 12, n), r.gamma(2, 3, n), r.normal(7.8, 0.9, n)
    summer = np.cos(2 * np.pi * (month - 6.5) / 12)
    nights = 60 + 10 * stars - 0.3 * price + 25 * summer - 2 * beach + 9 * (rating - 7.8)
    nights = nights + 4 * summer * (6 - beach) + r.normal(0, 6, n)
    columns = [stars, np.log(price), summer, np.sin(2 * np.pi * month / 12), beach, rating]
    return torch.tensor(np.stack(columns, 1)).float(), torch.tensor(nights).float()


def mean_squared(out, target):
    return ((out - target) ** 2).mean()


def main():
    healthy, seed = arguments(__doc__)
    x, y = hotels(seed)
    x, x_val = standardise(x[:1600], x[1600:])
    y, y_val = standardise(y[:1600], y[1600:])
    model = nn.Sequential(
        nn.Linear(6, 48), nn.ReLU(), nn.Linear(48, 24), nn.ReLU(), nn.Linear(24, 1)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(12):
        total = 0.0
        for xb, yb in DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True):
            out = model(xb)
            if healthy:
                out = out.squeeze(1)
            loss = mean_squared(out, yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() / 50
        with torch.no_grad():
            r2 = 1 - (model(x_val)[:, 0] - y_val).pow(2).mean() / y_val.var()
        if epoch % 3 == 2:
            print(f"epoch {epoch + 1}: loss {total:.3f}, R2 of new hotels {r2.item():.3f}")


if __name__ == "__main__":
    main()
