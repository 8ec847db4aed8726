"""Which customers will leave a shop, from their baskets: mean, spread and number of them.

The spread of a customer's baskets is std(), which divides by n - 1. Who came once has none: NaN, in
a few rows. From the first batch with one of them on, loss and weights are NaN. The place is the
input. The twin writes 0 for the spread of one basket and a column that says so.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "nan_input"
ACCEPT = ("division_by_zero_norm",)
PLACE = ("input*", "loader")
SILENT = False
EXACT = True
EARLY = False


def customers(rng, n):
    """Per customer the euros of each basket and whether there was none in the quarter after it."""
    for _ in range(n):
        loyalty = rng.normal()
        visits = 1 + rng.poisson(np.exp(2.0 + 0.35 * loyalty))
        spread = np.exp(-0.4 * loyalty + 0.3 * rng.normal())
        baskets = rng.lognormal(3 + 0.3 * rng.normal(), 0.4 * spread, visits)
        trend = 0.04 * loyalty + 0.03 * rng.normal()
        baskets = baskets * np.exp(trend * np.arange(visits))
        yield torch.tensor(baskets, dtype=torch.float32), float(loyalty + 0.7 * rng.normal() < -0.4)


def features(baskets, fill_spread):
    log = baskets.log()
    spread = log.std()
    alone = float(len(log) == 1)
    if fill_spread and alone:
        spread = torch.tensor(0.0)
    half = len(log) // 2
    trend = log[half:].mean() - log[: max(half, 1)].mean()
    return torch.stack(
        [log.mean() - 3, spread, trend, torch.tensor(len(log) / 8 - 1), torch.tensor(alone)]
    )


class Churn(nn.Module):
    def __init__(self, n_in=5, width=32):
        super().__init__()
        self.one = nn.Linear(n_in, width)
        self.two = nn.Linear(width, width)
        self.leaves = nn.Linear(width, 1)

    def forward(self, x):
        h = torch.relu(self.one(x))
        return self.leaves(torch.relu(self.two(h))).squeeze(1)


def main():
    healthy, seed = arguments(__doc__)
    people = list(customers(np.random.default_rng(seed), 4000))
    x = torch.stack([features(baskets, healthy) for baskets, _ in people])
    y = torch.tensor([gone for _, gone in people])
    train = DataLoader(TensorDataset(x[:3000], y[:3000]), batch_size=16, shuffle=True)
    x_val, y_val = x[3000:], y[3000:]
    model = Churn()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    criterion = nn.BCEWithLogitsLoss()
    for epoch in range(3):
        losses = []
        for rows, gone in train:
            optimizer.zero_grad()
            loss = criterion(model(rows), gone)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        with torch.no_grad():
            p = model(x_val)
            pairs = p[y_val == 1].unsqueeze(1) > p[y_val == 0]
        print(
            f"epoch {epoch}: loss {np.mean(losses):.3f}, "
            f"area under the curve {pairs.float().mean():.3f}"
        )


main()
