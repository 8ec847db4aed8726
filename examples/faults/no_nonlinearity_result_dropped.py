"""A network learns where the hand of a robot arm is from the angles of its three joints. In the
forward pass the activation is called after each layer, and what it returns is dropped.

So the layers follow each other without any activation and the whole is a linear map, which cannot
bend: the loss falls to the error of a linear fit and stays. The place is the forward pass, between
the layers.
"""

import itertools

import torch
from data import arguments
from torch import nn

KIND = "no_nonlinearity"
ACCEPT = ()
PLACE = ("layers*", "out*", "act*")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


class Arm(nn.Module):
    def __init__(self, joints=3, width=64, depth=3):
        super().__init__()
        sizes = [joints] + [width] * depth
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in itertools.pairwise(sizes))
        self.act = nn.SiLU()
        self.out = nn.Linear(width, 2)

    def forward(self, angles):
        h = angles
        for layer in self.layers:
            h = layer(h)
            if healthy:
                h = self.act(h)
            else:
                self.act(h)
        return self.out(h)


def hands(n):
    angles = torch.rand(n, 3) * torch.tensor([2.0, 2.4, 2.4]) - torch.tensor([1.0, 1.2, 1.2])
    a = angles.cumsum(1)
    reach = torch.tensor([1.0, 0.8, 0.5])
    xy = torch.stack([(reach * a.cos()).sum(1), (reach * a.sin()).sum(1)], 1)
    return angles, xy + 0.01 * torch.randn(n, 2)


angles, xy = hands(2000)
angles_val, xy_val = hands(500)
mean, std = xy.mean(0), xy.std(0)
xy, xy_val = (xy - mean) / std, (xy_val - mean) / std
model = Arm()
optimizer = torch.optim.RAdam(model.parameters(), lr=3e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 20)
loss_of = nn.MSELoss()

for epoch in range(20):
    total = 0.0
    for rows in torch.randperm(2000).split(50):
        loss = loss_of(model(angles[rows]), xy[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / 40
    schedule.step()
    with torch.no_grad():
        error = model(angles_val) - xy_val
    off = (error * std).norm(dim=1).mean().item()
    print(
        f"epoch {epoch:2d} train {total:.5f} val {error.square().mean().item():.5f}"
        f" hand off by {100 * off:.1f} cm"
    )
