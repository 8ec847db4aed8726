"""A forecast of how long letters take: the loss stops at 0.74 of the variance and that is all.

Most of a letter's time is chance; the network learns the part that can be known within a few
epochs and then its loss stays. People ask what is wrong with a loss that does not go on falling;
it has come to the variance of the noise, which the program knows as it made the data.
"""

import numpy as np
import torch
from data import arguments, standardise
from torch import nn

ODD = "loss stuck at 0.74 with R2 0.26: the noise of the data is 0.73, no model can do better"
_, seed = arguments(__doc__)


def letters(n, rng):
    """Distance, weight, weekday as a turn, price class; the days it takes, mostly by chance."""
    distance = rng.gamma(2, 200, n)
    weight = rng.lognormal(3, 0.5, n)
    turn = rng.integers(0, 7, n) / 7 * 2 * np.pi
    fast = rng.integers(0, 2, n)
    known = 1.2 + 0.002 * distance * (1 - 0.6 * fast) + 0.5 * np.sin(turn) + 0.01 * weight
    noise = rng.normal(0, 1.05, n)
    columns = [np.log(distance), np.log(weight), np.sin(turn), np.cos(turn), fast]
    return np.stack(columns, 1), known + noise, noise


class DeliveryNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(5, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 1)
        )

    def forward(self, x):
        return self.layers(x).squeeze(1)


def main():
    rng = np.random.default_rng(seed)
    columns, days, noise = letters(9000, rng)
    x, x_val = torch.tensor(columns[:7500]).float(), torch.tensor(columns[7500:]).float()
    y, y_val = torch.tensor(days[:7500]).float(), torch.tensor(days[7500:]).float()
    floor = noise[7500:].var() / days[:7500].var()
    x, x_val = standardise(x, x_val)
    y, y_val = standardise(y, y_val)
    print(f"variance of the noise: {floor:.3f} of the variance of the days")
    model = DeliveryNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 6, gamma=0.4)
    for epoch in range(16):
        losses = []
        for rows in torch.randperm(len(x)).split(100):
            loss = ((model(x[rows]) - y[rows]) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        schedule.step()
        with torch.no_grad():
            val = ((model(x_val) - y_val) ** 2).mean().item()
        print(f"epoch {epoch:2d} train {np.mean(losses):.4f} val {val:.4f} R2 {1 - val:.3f}")


main()
