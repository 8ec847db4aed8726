"""Output of a solar panel over the day and the year; the network has two hidden units.

A network of this width had been enough for one panel facing south. For a roof with shade from a
chimney and a tree the surface has several bumps, and two units cannot bend that often: the loss
soon stays flat, in training as in validation. The place is the hidden layers, in "net".
The twin has 64 units in two layers of the same kind.
"""

import math

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "low_capacity"
ACCEPT = ()
PLACE = ("net", "net.0", "net.2", "net.4")
SILENT = True
EXACT = False
EARLY = False


def panel(n, seed):
    g = torch.Generator().manual_seed(seed)
    hour, day = torch.rand(n, generator=g) * 2 - 1, torch.rand(n, generator=g) * 2 - 1
    sun = torch.cos(hour * math.pi / 2) * (1 + 0.4 * torch.cos(day * math.pi))
    tree = 0.7 * torch.exp(-(((hour - 0.45) / 0.15) ** 2) - ((day + 0.1) / 0.5) ** 2)
    chimney = 0.6 * torch.exp(-(((hour + 0.3) / 0.12) ** 2))
    watts = sun * (1 - tree - chimney) + 0.03 * torch.randn(n, generator=g)
    x = torch.stack([hour, day], 1) / 0.58
    return x, ((watts - 0.55) / 0.35).unsqueeze(1)


class PanelModel(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(2, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh(),
            nn.Linear(hidden, 1),
        )  # fmt: skip

    def forward(self, x):
        return self.net(x)


class Trainer:
    def __init__(self, model, train, val, epochs):
        self.model, self.val, self.epochs = model, val, epochs
        self.loader = DataLoader(TensorDataset(*train), batch_size=64, shuffle=True)
        self.optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
        self.scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, epochs)
        self.criterion = nn.MSELoss()

    def fit(self):
        for epoch in range(self.epochs):
            self.model.train()
            total = 0.0
            for x, y in self.loader:
                self.optimizer.zero_grad()
                loss = self.criterion(self.model(x), y)
                loss.backward()
                self.optimizer.step()
                total += loss.item()
            self.scheduler.step()
            if epoch % 6 == 5:
                train = total / len(self.loader)
                print(f"epoch {epoch + 1:2d}  train {train:.4f}  val {self.score():.4f}")

    @torch.no_grad()
    def score(self):
        self.model.eval()
        return self.criterion(self.model(self.val[0]), self.val[1]).item()


def main():
    healthy, seed = arguments(__doc__)
    model = PanelModel(hidden=64 if healthy else 2)
    Trainer(model, panel(2000, 1500 + seed), panel(500, 2500 + seed), epochs=30).fit()


if __name__ == "__main__":
    main()
