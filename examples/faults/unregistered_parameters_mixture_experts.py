"""Tyre grip on wet and dry roads: the experts of a mixture are kept in a plain Python dict.

A gate weighs four small experts. They hang in `self.experts = {...}` so as to be called by name; a
dict is no module, so `parameters()` gives the gate and the output only, and the experts
stay as they were at random. The place is the experts (or the optimizer that lacks them).
The twin keeps them in `nn.ModuleDict`.
"""

import torch
from data import arguments
from torch import nn

KIND = "unregistered_parameters"
ACCEPT = ("parameters_not_in_optimizer", "frozen_parameters")
PLACE = ("experts", "optimizer", "model")
SILENT = True
EXACT = True
EARLY = True

ROADS = ("dry", "wet", "snow", "gravel")


class Grip(nn.Module):
    def __init__(self, registered):
        super().__init__()
        self.gate = nn.Linear(6, len(ROADS))
        experts = {
            road: nn.Sequential(nn.Linear(6, 24), nn.Tanh(), nn.Linear(24, 4)) for road in ROADS
        }
        self.experts = nn.ModuleDict(experts) if registered else experts
        self.out = nn.Linear(4, 1)

    def forward(self, x):
        weight = self.gate(x).softmax(-1)
        said = torch.stack([self.experts[road](x) for road in ROADS], 1)
        return self.out((weight[..., None] * said).sum(1)).squeeze(-1)


def drives(n):
    slip = torch.rand(n) * 0.3
    load = torch.randn(n)
    water = torch.randn(n)
    cold = torch.randn(n)
    loose = torch.randn(n)
    tread = torch.randn(n)
    top = torch.where(water > 0.3, 0.65, 1.0) * torch.where(cold > 1, 0.5, 1.0)
    stiff = torch.where(loose > 0.8, 8.0, 18.0) + 1.5 * tread
    grip = top * torch.sin(1.6 * torch.atan(stiff * slip)) * (1 - 0.06 * load)
    x = torch.stack([(slip - 0.15) / 0.087, load, water, cold, loose, tread], 1)
    return x, (grip + 0.03 * torch.randn(n) - 0.65) / 0.28


class Fit:
    def __init__(self, model, lr):
        self.model = model
        self.opt = torch.optim.Adam(model.parameters(), lr=lr)

    def epoch(self, x, y, size=50):
        total = 0.0
        for rows in torch.randperm(len(x)).split(size):
            loss = (self.model(x[rows]) - y[rows]).square().mean()
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            total += loss.item() * len(rows)
        return total / len(x)

    @torch.no_grad()
    def test(self, x, y):
        return (self.model(x) - y).square().mean().item()


if __name__ == "__main__":
    healthy, seed = arguments(__doc__)
    x, y = drives(2500)
    held_out = drives(500)
    fit = Fit(Grip(healthy), lr=1e-2)
    for epoch in range(10):
        loss = fit.epoch(x, y)
        if epoch % 2:
            print(f"epoch {epoch + 1}: train {loss:.4f}, held out {fit.test(*held_out):.4f}")
