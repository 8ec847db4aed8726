"""A PointNet estimates the rotation between two scans of an object as axis and angle. The last
layer starts at zero, as in iterative pose regression, so that the first guess is "not
turned at all".

The axis is v / |v|, and |v| is exactly zero: the first loss is not a number already, and after one
step no weight is. The place is the rotation. The twin adds a small constant before it takes the
norm, as the original code did.
"""

import torch
from data import arguments
from torch import nn

KIND = "division_by_zero_norm"
ACCEPT = ()
PLACE = ("rotate*", "head*", "", "loss*")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


def cross_matrix(axis):
    zero = torch.zeros_like(axis[:, 0])
    x, y, z = axis.unbind(1)
    rows = [zero, -z, y, z, zero, -x, -y, x, zero]
    return torch.stack(rows, 1).view(-1, 3, 3)


class Rodrigues(nn.Module):
    """The matrix of a rotation given as axis times angle."""

    def forward(self, v):
        angle = torch.linalg.norm(v + 1e-8 if healthy else v, dim=1, keepdim=True)
        k = cross_matrix(v / angle)
        angle = angle.unsqueeze(2)
        return torch.eye(3) + angle.sin() * k + (1 - angle.cos()) * (k @ k)


class PoseNet(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.points = nn.Sequential(
            nn.Linear(6, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()
        )
        self.head = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 3))
        nn.init.zeros_(self.head[-1].weight)
        nn.init.zeros_(self.head[-1].bias)
        self.rotate = Rodrigues()

    def forward(self, before, after):
        h = self.points(torch.cat([before, after], 2)).mean(1)
        return self.rotate(self.head(h))


def scans(n, g, points=24):
    before = torch.randn(n, points, 3, generator=g)
    v = torch.randn(n, 3, generator=g)
    v = v / v.norm(dim=1, keepdim=True) * (0.1 + 1.1 * torch.rand(n, 1, generator=g))
    angle = v.norm(dim=1, keepdim=True)
    k, a = cross_matrix(v / angle), angle.unsqueeze(2)
    matrix = torch.eye(3) + a.sin() * k + (1 - a.cos()) * (k @ k)
    after = before @ matrix.transpose(1, 2) + 0.02 * torch.randn(n, points, 3, generator=g)
    return before, after, matrix


def degrees(a, b):
    trace = (a.transpose(1, 2) @ b).diagonal(dim1=1, dim2=2).sum(1)
    return torch.rad2deg(((trace - 1) / 2).clamp(-1, 1).acos()).mean().item()


g = torch.Generator().manual_seed(seed)
before, after, matrix = scans(2400, g)
val = scans(400, g)
model = PoseNet()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 6, 0.4)
for epoch in range(12):
    for rows in torch.randperm(len(before)).split(60):
        turned = model(before[rows], after[rows])
        loss = (turned - matrix[rows]).square().sum((1, 2)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    schedule.step()
    with torch.no_grad():
        error = degrees(model(val[0], val[1]), val[2])
    print(f"epoch {epoch:2d}  loss {loss.item():.4f}  mean error {error:.1f} degrees")
