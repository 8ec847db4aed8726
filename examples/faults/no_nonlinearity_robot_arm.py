"""Where is the hand of a robot arm, given its three joints: layers upon layers, all linear.

The net is built by a helper from a list of widths. The activation is an option of it, none by
default, and the call leaves it out. Four linear layers are one linear map, and the sines of the
angles cannot be had from it.
The place is the trunk of the net.
The twin asks for Tanh.
"""

import itertools

import torch
from data import arguments
from torch import nn
from torch.optim.lr_scheduler import StepLR

KIND = "no_nonlinearity"
ACCEPT = ("low_capacity",)
PLACE = ("trunk", "trunk.0", "output*")
SILENT = True
EXACT = True
EARLY = True


def mlp(widths, activation=None):
    layers = []
    for a, b in itertools.pairwise(widths[:-1]):
        layers.append(nn.Linear(a, b))
        if activation is not None:
            layers.append(activation())
    layers.append(nn.Linear(widths[-2], widths[-1]))
    return nn.Sequential(*layers)


class Arm(nn.Module):
    def __init__(self, activation):
        super().__init__()
        self.trunk = mlp([3, 64, 64, 64, 2], activation)

    def forward(self, joints):
        return self.trunk(joints)


def poses(n):
    joints = (torch.rand(n, 3) - 0.5) * torch.tensor([3.0, 3.6, 3.6])
    along = joints.cumsum(1)
    length = torch.tensor([0.6, 0.5, 0.3])
    hand = torch.stack([(length * along.cos()).sum(1), (length * along.sin()).sum(1)], 1)
    return joints, hand + 0.005 * torch.randn(n, 2)


def main():
    healthy, _seed = arguments(__doc__)
    joints, hand = poses(3000)
    joints_val, hand_val = poses(500)
    arm = Arm(nn.Tanh if healthy else None)
    opt = torch.optim.Adam(arm.parameters(), lr=5e-3)
    slower = StepLR(opt, step_size=4, gamma=0.4)
    for epoch in range(12):
        mean = 0.0
        for rows in torch.randperm(3000).split(60):
            loss = nn.functional.mse_loss(arm(joints[rows]), hand[rows])
            opt.zero_grad()
            loss.backward()
            opt.step()
            mean += loss.item() / 50
        slower.step()
        if epoch % 3 == 2:
            with torch.no_grad():
                gap = (arm(joints_val) - hand_val).norm(dim=1).mean()
            print(f"epoch {epoch + 1:2d} loss {mean:.5f}  hand off by {100 * gap:.1f} cm")


if __name__ == "__main__":
    main()
