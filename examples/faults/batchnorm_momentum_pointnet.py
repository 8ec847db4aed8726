"""A small PointNet tells five shapes from clouds of 64 points. As in the original code the batch
norms get a decay that is raised as training goes on, and it is handed to PyTorch as it stands.

PyTorch's `momentum` is the share of the new batch, not of the history: the running statistics are
more and more those of the last batch alone, which has three clouds, and every validation is a
lottery. The place is the batch norms.
"""

import math

import torch
from data import arguments
from torch import nn
from torch.nn import functional as F

KIND = "batchnorm_momentum"
ACCEPT = ()
PLACE = ("*bn*",)
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


def clouds(n, points, g):
    """Points on spheres, cubes, cylinders, cones and rings, of random size, turned and noisy."""
    y = torch.randint(0, 5, (n,), generator=g)
    u = torch.rand(n, points, generator=g) * 2 * math.pi
    v = torch.rand(n, points, generator=g) * 2 - 1
    r = (1 - v * v).sqrt()
    ball = torch.stack([r * u.cos(), r * u.sin(), v], -1)
    cube = ball / ball.abs().amax(-1, keepdim=True)
    tube = torch.stack([u.cos(), u.sin(), v], -1)
    cone = torch.stack([u.cos() * (1 - v) / 2, u.sin() * (1 - v) / 2, v], -1)
    w = torch.rand(n, points, generator=g) * 2 * math.pi
    ring = torch.stack(
        [u.cos() * (0.8 + 0.3 * w.cos()), u.sin() * (0.8 + 0.3 * w.cos()), 0.3 * w.sin()], -1
    )
    x = torch.stack([ball, cube, tube, cone, ring])[y, torch.arange(n)]
    x = x * (0.7 + 0.6 * torch.rand(n, 1, 3, generator=g))
    a = torch.rand(n, generator=g) * 2 * math.pi
    turn = torch.zeros(n, 3, 3)
    turn[:, 0, 0], turn[:, 0, 1], turn[:, 1, 0], turn[:, 1, 1], turn[:, 2, 2] = (
        a.cos(),
        -a.sin(),
        a.sin(),
        a.cos(),
        1.0,
    )
    return x @ turn + 0.14 * torch.randn(n, points, 3, generator=g), y


class PointNet(nn.Module):
    def __init__(self, classes=5):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv1d(3, 32, 1), nn.BatchNorm1d(32)
        self.conv2, self.bn2 = nn.Conv1d(32, 64, 1), nn.BatchNorm1d(64)
        self.conv3, self.bn3 = nn.Conv1d(64, 128, 1), nn.BatchNorm1d(128)
        self.fc1, self.bn4 = nn.Linear(128, 64), nn.BatchNorm1d(64)
        self.fc2, self.bn5 = nn.Linear(64, 32), nn.BatchNorm1d(32)
        self.fc3 = nn.Linear(32, classes)

    def forward(self, x):
        x = x.transpose(1, 2)
        x = F.relu(self.bn1(self.conv1(x)))
        x = F.relu(self.bn2(self.conv2(x)))
        x = self.bn3(self.conv3(x)).amax(2)
        x = F.relu(self.bn4(self.fc1(x)))
        return self.fc3(F.relu(self.bn5(self.fc2(x))))


def set_bn_decay(model, epoch, start=0.9, rate=0.7):
    decay = min(1 - (1 - start) * rate**epoch, 0.98)
    for m in model.modules():
        if isinstance(m, nn.BatchNorm1d):
            m.momentum = 1 - decay if healthy else decay


g = torch.Generator().manual_seed(100 + seed)
x, y = clouds(643, 64, g)
x_val, y_val = clouds(320, 64, g)
model = PointNet()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 8)

for epoch in range(8):
    set_bn_decay(model, epoch)
    model.train()
    total = 0.0
    for rows in torch.randperm(len(x)).split(8):
        loss = F.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    scheduler.step()
    model.eval()
    with torch.no_grad():
        out = model(x_val)
    accuracy = (out.argmax(1) == y_val).float().mean()
    print(
        f"epoch {epoch}: train {total / 81:.3f} val {F.cross_entropy(out, y_val):.3f}"
        f" accuracy {accuracy:.3f}"
    )
