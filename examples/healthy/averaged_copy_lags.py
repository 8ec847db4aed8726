"""A regression of concrete strength whose moving average of the weights is far worse than the
weights themselves at first, and then better.

People ask why their averaged model predicts nonsense while the trained one is fine. The average
starts from the first weights and has a memory of some 200 steps, so that it lags behind while the
weights still travel; once they only jitter, it is the better one.
"""

import copy

import numpy as np
import torch
from data import arguments
from torch import nn

ODD = (
    "the averaged copy is much worse than the model in the first epochs; it lags by its memory "
    "and is the better one at the end"
)
_, seed = arguments(__doc__)


def mixtures(count, rng):
    """Amounts in a mixture and its age, all standardised, and the strength."""
    amounts = rng.normal(0, 1, (count, 6))
    age = rng.uniform(-1.7, 1.7, (count, 1))
    water = amounts[:, 1] - 0.6 * amounts[:, 0]
    strength = 1.2 * amounts[:, 0] - 0.9 * water + np.tanh(1.5 * age[:, 0])
    strength = strength + 0.5 * amounts[:, 2] * np.tanh(age[:, 0]) - 0.25 * amounts[:, 3] ** 2
    strength = strength + rng.normal(0, 0.3, count)
    return np.concatenate([amounts, age], 1), strength


class Averaged:
    """A copy of the net whose weights follow those of the net slowly."""

    def __init__(self, net, decay):
        self.net, self.decay = copy.deepcopy(net).eval(), decay

    @torch.no_grad()
    def follow(self, net):
        for own, other in zip(self.net.parameters(), net.parameters(), strict=True):
            own.lerp_(other, 1 - self.decay)


def squared_error(net, x, y):
    return (net(x)[:, 0] - y).square().mean()


def main():
    x, y = mixtures(2400, np.random.default_rng(12 + seed))
    y = (y - y[:1800].mean()) / y[:1800].std()
    x, y = torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)
    net = nn.Sequential(nn.Linear(7, 48), nn.SiLU(), nn.Linear(48, 48), nn.SiLU(), nn.Linear(48, 1))
    averaged = Averaged(net, decay=0.995)
    optimizer = torch.optim.AdamW(net.parameters(), lr=4e-3, weight_decay=1e-2)
    for epoch in range(1, 16):
        net.train()
        losses = []
        for rows in torch.randperm(1800).split(30):
            loss = squared_error(net, x[rows], y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            averaged.follow(net)
            losses.append(loss.item())
        net.eval()
        with torch.no_grad():
            own = squared_error(net, x[1800:], y[1800:]).item()
            mean = squared_error(averaged.net, x[1800:], y[1800:]).item()
        print(f"epoch {epoch:2d}  train {np.mean(losses):.4f}  val {own:.4f}  averaged {mean:.4f}")


main()
