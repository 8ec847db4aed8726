"""Wear of a lathe's tool by four sensors: the branches for the sensors are kept in a plain list.

Each sensor has its own small branch, made in a list comprehension. PyTorch doesn't look into
plain lists, so `model.parameters()` gives the last layers only, and the branches stay random.
The place is the branches (or the optimizer). The twin uses `nn.ModuleList`.
"""

import torch
from data import arguments
from torch import nn

KIND = "unregistered_parameters"
ACCEPT = ("parameters_not_in_optimizer", "frozen_parameters")
PLACE = ("branches", "branches.0", "branches.1", "branches.2", "branches.3", "optimizer")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


class ToolWear(nn.Module):
    def __init__(self, sensors=4, window=24, width=6):
        super().__init__()
        branches = [
            nn.Sequential(nn.Linear(window, 24), nn.ReLU(), nn.Linear(24, width), nn.ReLU())
            for _ in range(sensors)
        ]
        self.branches = nn.ModuleList(branches) if healthy else branches
        self.merge = nn.Linear(sensors * width, 1)

    def forward(self, x):
        parts = [branch(x[:, i]) for i, branch in enumerate(self.branches)]
        return self.merge(torch.cat(parts, 1)).squeeze(1)


def cuts(n):
    t = torch.arange(24) / 24
    wear = torch.rand(n)
    speed = 2 + 2 * torch.rand(n, 4, 1)
    strength = 0.5 + wear[:, None, None] * torch.tensor([1.5, 0.8, 0.0, 0.4])[:, None]
    signal = strength * torch.sin(6.283 * (speed * t + torch.rand(n, 4, 1)))
    return signal + 0.2 * torch.randn(n, 4, 24), (wear - 0.5) / 0.29


x, wear = cuts(2000)
x_val, wear_val = cuts(500)
model = ToolWear()
opt = torch.optim.AdamW(model.parameters(), lr=2e-3)
loss_fn = nn.SmoothL1Loss()
for epoch in range(1, 21):
    epoch_loss = []
    for rows in torch.randperm(2000).split(64):
        loss = loss_fn(model(x[rows]), wear[rows])
        opt.zero_grad()
        loss.backward()
        opt.step()
        epoch_loss.append(loss.item())
    if epoch % 4 == 0:
        with torch.no_grad():
            val = loss_fn(model(x_val), wear_val).item()
        print(f"epoch {epoch:2d}  {sum(epoch_loss) / len(epoch_loss):.4f}  val {val:.4f}")
