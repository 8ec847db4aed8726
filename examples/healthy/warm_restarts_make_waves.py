"""Diamond prices under cosine annealing with warm restarts: the loss leaps at each restart.

People ask whether the leaps mean that training is unstable. At each restart the learning rate goes
back from nearly zero to its full size, so that the weights leave the narrow valley they had found;
at the end of each cycle, where one would stop, the validation error is as low as ever or lower.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = "the loss leaps at each restart of the schedule, and the ends of the cycles get no worse"
_, seed = arguments(__doc__)

CYCLE, CYCLES = 8, 3


def diamonds(count, rng):
    carat = rng.lognormal(-0.4, 0.5, count)
    cut, colour, clarity = (rng.integers(0, n, count) for n in (5, 7, 8))
    depth = rng.normal(61.7, 1.4, count)
    table = rng.normal(57.5, 2.2, count)
    value = 8.3 + 1.7 * np.log(carat) + 0.03 * cut - 0.06 * colour * np.sqrt(carat) + 0.1 * clarity
    value += 0.04 * np.sin(depth) - 0.01 * np.abs(table - 57) + 0.25 * np.tanh(3 * (carat - 1))
    value += rng.normal(0, 0.07, count)
    return np.stack([carat, cut, colour, clarity, depth, table], 1), value


class Pricer(nn.Module):
    def __init__(self, features, width=64):
        super().__init__()
        self.inner = nn.Linear(features, width)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Linear(width, width), nn.BatchNorm1d(width), nn.ReLU())
            for _ in range(2)
        )
        self.price = nn.Linear(width, 1)

    def forward(self, x):
        h = torch.relu(self.inner(x))
        for block in self.blocks:
            h = h + block(h)
        return self.price(h).squeeze(1)


def main():
    rng = np.random.default_rng(seed)
    (x, y), (x_val, y_val) = diamonds(4000, rng), diamonds(1000, rng)
    mean, std, centre, scale = x.mean(0), x.std(0), y.mean(), y.std()
    x, x_val = (torch.tensor((p - mean) / std, dtype=torch.float32) for p in (x, x_val))
    y, y_val = (torch.tensor((p - centre) / scale, dtype=torch.float32) for p in (y, y_val))
    loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)
    model = Pricer(x.shape[1])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(
        optimizer, T_0=CYCLE * len(loader), eta_min=1e-4
    )
    for epoch in range(CYCLE * CYCLES):
        model.train()
        losses = []
        for features, price in loader:
            loss = nn.functional.mse_loss(model(features), price)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
        model.eval()
        with torch.no_grad():
            val = nn.functional.mse_loss(model(x_val), y_val).item()
        print(
            f"epoch {epoch:2d} rate {schedule.get_last_lr()[0]:.4f} train {np.mean(losses):.4f} "
            f"val {val:.4f} {'<- end of a cycle' if epoch % CYCLE == CYCLE - 1 else ''}"
        )


main()
