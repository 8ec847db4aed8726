"""Accidents at crossings by a Poisson regression, traffic as exposure: nine in ten have none.

The logarithm of the exposure is added to the output; the output's bias begins at the logarithm of
the rate of all crossings. Most targets are 0, and the prediction is hardly ever above one half.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = "nine in ten targets are 0, whole numbers as targets, a loss that soon stands still"


def crossings(rng, n):
    speed = rng.choice([30, 50, 70, 100], n, p=[0.3, 0.4, 0.2, 0.1])
    arms = rng.choice([3, 4, 5], n, p=[0.5, 0.45, 0.05])
    lights = rng.random(n) < 0.3
    roundabout = ~lights & (rng.random(n) < 0.2)
    sight = rng.gamma(4, 30, n)
    bicycles = rng.lognormal(0, 0.8, n)
    traffic = rng.lognormal(0, 0.7, n)
    log_rate = -2.9 + 0.02 * (speed - 50) + 0.6 * (arms - 3) - 0.8 * lights - 1.2 * roundabout
    log_rate = log_rate + 0.35 * np.log(bicycles) - 0.9 * np.tanh((sight - 100) / 60)
    log_rate = log_rate + 0.7 * (speed > 60) * lights
    number = rng.poisson(np.exp(log_rate) * traffic)
    x = [(speed - 52) / 20, arms - 3.5, lights, roundabout, (sight - 120) / 60, np.log(bicycles)]
    table = [np.stack([np.asarray(c, float) for c in x], 1), np.log(traffic), number]
    return [torch.tensor(part, dtype=torch.float32) for part in table]


class Rate(nn.Module):
    def __init__(self, start, width=32):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(6, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU()
        )
        self.log_rate = nn.Linear(width, 1)
        nn.init.zeros_(self.log_rate.weight)
        nn.init.constant_(self.log_rate.bias, start)

    def forward(self, x, log_traffic):
        return self.log_rate(self.body(x)).squeeze(1) + log_traffic


def main():
    _, seed = arguments(__doc__)
    rng = np.random.default_rng(seed)
    x, log_traffic, number = crossings(rng, 10_000)
    test = crossings(rng, 4000)
    start = (number.sum() / log_traffic.exp().sum()).log().item()
    net = Rate(start)
    criterion = nn.PoissonNLLLoss(log_input=True)
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
    loader = DataLoader(TensorDataset(x, log_traffic, number), batch_size=128, shuffle=True)
    constant = criterion(start + test[1], test[2]).item()
    print(f"without accidents {(number == 0).float().mean():.3f}, constant rate {constant:.4f}")
    for epoch in range(5):
        losses = []
        for rows, exposure, target in loader:
            loss = criterion(net(rows, exposure), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        with torch.no_grad():
            output = net(*test[:2])
            worst = test[2][output.argsort(descending=True)[:400]].sum() / test[2].sum()
        print(
            f"epoch {epoch}: loss {np.mean(losses):.4f}, test {criterion(output, test[2]):.4f}, "
            f"accidents at the tenth with the highest rate {worst:.2f}"
        )


main()
