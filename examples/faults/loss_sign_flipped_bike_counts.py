"""A network that forecasts hourly bike rentals by a Poisson likelihood, which the loss minimises
instead of its negative.

The user takes the mean log-probability for the loss and forgets the minus sign. The place is the
loss.
"""

import numpy as np
import torch
from data import arguments, standardise
from torch import nn
from torch.distributions import Poisson

KIND = "loss_sign_flipped"
ACCEPT = ()
PLACE = ("loss",)
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)


def rentals(n, seed):
    r = np.random.default_rng(seed)
    hour, day = r.integers(0, 24, n), r.integers(0, 7, n)
    temp, rain = r.normal(14, 8, n), r.random(n) < 0.2
    rush = np.exp(-((hour - 8) ** 2) / 4) + np.exp(-((hour - 17.5) ** 2) / 6)
    leisure = np.exp(-((hour - 14) ** 2) / 18)
    rate = np.where(day < 5, 0.5 + 9 * rush + 2 * leisure, 0.5 + 6 * leisure)
    rate = (
        rate
        * np.exp(0.04 * (temp - 14) - 0.0015 * (temp - 22) ** 2 * (temp > 22))
        * np.where(rain, 0.45, 1)
    )
    x = np.stack(
        [
            np.sin(hour / 24 * 6.283),
            np.cos(hour / 24 * 6.283),
            np.sin(hour / 12 * 6.283),
            np.cos(hour / 12 * 6.283),
            day >= 5,
            temp,
            rain,
        ],
        1,
    )
    return torch.tensor(x, dtype=torch.float32), torch.tensor(r.poisson(rate), dtype=torch.float32)


def mean_log_likelihood(model, x, counts):
    raw = model(x).squeeze(1)
    return Poisson(nn.functional.softplus(raw) + 1e-3).log_prob(counts).mean()


def main():
    x, counts = rentals(6000, seed)
    x, x_val = standardise(x[:4500], x[4500:])
    counts, counts_val = counts[:4500], counts[4500:]
    model = nn.Sequential(
        nn.Linear(7, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1)
    )
    optimizer = torch.optim.RMSprop(model.parameters(), lr=5e-4)
    sign = -1 if healthy else 1
    for epoch in range(20):
        for rows in torch.randperm(len(x)).split(100):
            loss = sign * mean_log_likelihood(model, x[rows], counts[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            val = mean_log_likelihood(model, x_val, counts_val).item()
            error = (
                (nn.functional.softplus(model(x_val)).squeeze(1) - counts_val).abs().mean().item()
            )
        if epoch % 3 == 0 or epoch == 19:
            print(
                f"epoch {epoch} loss {loss.item():.3f} validation log likelihood {val:.3f} mean error {error:.3f}"  # noqa: E501
            )


main()
