"""A PointNet tells standing, lying and leaning rods from their points, which are turned at random.

The rotations are about any axis, though the class is the angle to the floor: after them every class
looks alike, and the training loss stays near ln 3. The twin turns the clouds about the upright axis
only. The place is the loader (the input).
"""

import math

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "destructive_augmentation"
ACCEPT = ("train_val_mismatch",)
PLACE = ("loader", "input")
SILENT = False
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)


def random_rotation():
    if healthy:
        a = torch.rand(()) * 2 * math.pi
        c, s = a.cos(), a.sin()
        z, o = torch.zeros(()), torch.ones(())
        return torch.stack(
            [torch.stack([c, -s, z]), torch.stack([s, c, z]), torch.stack([z, z, o])]
        )
    q, r = torch.linalg.qr(torch.randn(3, 3))
    return q * r.diagonal().sign()


class Rods(Dataset):
    def __init__(self, n, augment, g):
        self.labels = torch.randint(0, 3, (n,), generator=g)
        tilt = torch.tensor([0.0, 45.0, 90.0])[self.labels] + 6 * torch.randn(n, generator=g)
        tilt, heading = tilt * math.pi / 180, torch.rand(n, generator=g) * 2 * math.pi
        axis = torch.stack([tilt.sin() * heading.cos(), tilt.sin() * heading.sin(), tilt.cos()], -1)
        along = torch.rand(n, 48, 1, generator=g) * 3.4 - 1.7
        self.points = along * axis[:, None] + 0.3 * torch.randn(n, 48, 3, generator=g)
        self.augment = augment

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        points = self.points[i]
        if self.augment:
            points = points @ random_rotation().T
        return points, self.labels[i]


class PointNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.local = nn.Sequential(
            nn.Conv1d(3, 32, 1), nn.BatchNorm1d(32), nn.ReLU(),
            nn.Conv1d(32, 64, 1), nn.BatchNorm1d(64), nn.ReLU(),
        )  # fmt: skip
        self.top = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 3))

    def forward(self, points):
        return self.top(self.local(points.transpose(1, 2)).amax(-1))


g = torch.Generator().manual_seed(100 + seed)
train_loader = DataLoader(Rods(960, True, g), batch_size=32, shuffle=True)
val_loader = DataLoader(Rods(300, False, g), batch_size=100)
model = PointNet()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)

for epoch in range(10):
    model.train()
    total = 0.0
    for points, labels in train_loader:
        loss = F.cross_entropy(model(points), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        outs = [(model(points), labels) for points, labels in val_loader]
    hits = sum((out.argmax(1) == labels).sum().item() for out, labels in outs)
    val = sum(F.cross_entropy(out, labels).item() for out, labels in outs) / len(outs)
    print(
        f"{epoch}: train {total / len(train_loader):.3f}, val {val:.3f}, accuracy {hits / 300:.3f}"
    )
