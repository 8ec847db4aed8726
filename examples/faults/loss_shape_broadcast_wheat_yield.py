"""Learns the yield of wheat fields; the loss compares every forecast with every field.

The network gives a column, the table a plain row of yields, and the hand-written loss subtracts
the one from the other, which makes a square of differences. The best answer to that is the mean
yield for every field.
The place is the loss.
The twin takes the column's only entry away first.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

KIND = "loss_shape_broadcast"
ACCEPT = ()
PLACE = ("loss*", "output*")
SILENT = False
EXACT = True
EARLY = True


def fields(n, seed):
    r = np.random.default_rng(seed)
    rain = r.gamma(9, 60, n)
    nitrogen = r.uniform(0, 220, n)
    ph = r.normal(6.4, 0.6, n)
    sowing = r.normal(280, 12, n)
    clay = r.uniform(5, 50, n)
    tonnes = 3 + 0.03 * nitrogen - 0.00008 * nitrogen**2 + 1.6 * np.log(rain / 500)
    tonnes = tonnes - 1.1 * (ph - 6.5) ** 2 - 0.02 * np.abs(sowing - 278) + 0.02 * clay
    tonnes = tonnes + r.normal(0, 0.4, n)
    x = np.column_stack([rain, nitrogen, ph, sowing, clay])
    x = (x - x.mean(0)) / x.std(0)
    y = (tonnes - tonnes.mean()) / tonnes.std()
    return TensorDataset(*(torch.tensor(a, dtype=torch.float32) for a in (x, y)))


def huber(forecast, truth, delta=1.5):
    off = (forecast - truth).abs()
    return torch.where(off < delta, 0.5 * off**2, delta * (off - delta / 2)).mean()


class Trainer:
    def __init__(self, model, train, val, healthy):
        self.model, self.healthy = model, healthy
        self.train_loader = DataLoader(train, batch_size=50, shuffle=True)
        self.val_loader = DataLoader(val, batch_size=200)
        self.optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

    def forecast(self, x):
        out = self.model(x)
        return out.squeeze(1) if self.healthy else out

    def fit(self, epochs):
        for epoch in range(1, epochs + 1):
            self.model.train()
            for x, y in self.train_loader:
                self.optimizer.zero_grad()
                loss = huber(self.forecast(x), y)
                loss.backward()
                self.optimizer.step()
            if epoch % 3 == 0:
                print(f"epoch {epoch}: loss {loss.item():.3f}, validation R2 {self.score():.3f}")

    @torch.no_grad()
    def score(self):
        self.model.eval()
        pairs = [(self.model(x).flatten(), y) for x, y in self.val_loader]
        forecast, truth = (torch.cat(part) for part in zip(*pairs, strict=False))
        return 1 - ((forecast - truth) ** 2).mean().item() / truth.var().item()


if __name__ == "__main__":
    healthy, seed = arguments(__doc__)
    train, val = random_split(fields(1600, seed), [1200, 400])
    net = nn.Sequential(nn.Linear(5, 40), nn.ReLU(), nn.Linear(40, 40), nn.ReLU(), nn.Linear(40, 1))
    Trainer(net, train, val, healthy).fit(24)
