"""Shapes from point clouds, a small PointNet: centring and scaling happen in the training branch
alone.

`if self.train:` was written around the jitter. The next change put rotation and the normalisation
of the cloud below it, one indent too deep, so that validation clouds keep their scanner's offset
and units. The place is the data (the validation input). The twin normalises every cloud.
"""

import math

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "train_val_mismatch"
ACCEPT = ()
PLACE = ("loader", "input*")
SILENT = False
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
POINTS = 64


def scan(kind: int, g) -> torch.Tensor:
    u, v = torch.rand(2, POINTS, generator=g)
    a = 2 * math.pi * u
    if kind == 0:  # sphere
        z = 2 * v - 1
        p = torch.stack([(1 - z * z).sqrt() * a.cos(), (1 - z * z).sqrt() * a.sin(), z], 1)
    elif kind == 1:  # cylinder
        p = torch.stack([a.cos(), a.sin(), 2 * v - 1], 1)
    elif kind == 2:  # cone
        p = torch.stack([v.sqrt() * a.cos(), v.sqrt() * a.sin(), 1 - 2 * v.sqrt()], 1)
    elif kind == 3:  # torus
        b = 2 * math.pi * v
        p = torch.stack(
            [(1 + 0.4 * b.cos()) * a.cos(), (1 + 0.4 * b.cos()) * a.sin(), 0.4 * b.sin()], 1
        )
    else:  # box
        p = torch.rand(POINTS, 3, generator=g) * 2 - 1
        side = torch.randint(0, 3, (POINTS,), generator=g)
        p[torch.arange(POINTS), side] = p[torch.arange(POINTS), side].sign()
    stretch = 1 + 0.2 * torch.randn(3, generator=g)
    size = 2 + 3 * torch.rand(1, generator=g)
    offset = 4 * torch.randn(3, generator=g)
    return (p * stretch + 0.05 * torch.randn(POINTS, 3, generator=g)) * size + offset


class Clouds(Dataset):
    def __init__(self, n: int, train: bool):
        g = torch.Generator().manual_seed(2 * seed + train)
        self.label = torch.arange(n) % 5
        self.cloud = [scan(int(k), g) for k in self.label]
        self.train = train

    def __len__(self):
        return len(self.cloud)

    def normalise(self, cloud):
        cloud = cloud - cloud.mean(0)
        return cloud / cloud.norm(dim=1).max()

    def __getitem__(self, k):
        cloud = self.cloud[k]
        if self.train:
            turn = torch.rand(()) * 2 * math.pi
            c, s = turn.cos().item(), turn.sin().item()
            cloud = cloud @ torch.tensor([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
            cloud = self.normalise(cloud) + 0.01 * torch.randn_like(cloud)
        elif healthy:
            cloud = self.normalise(cloud)
        return cloud, self.label[k]


class PointNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.each = nn.Sequential(nn.Linear(3, 48), nn.ReLU(), nn.Linear(48, 80), nn.ReLU())
        self.all = nn.Sequential(nn.Linear(160, 64), nn.ReLU(), nn.Linear(64, 5))

    def forward(self, cloud):
        h = self.each(cloud)
        return self.all(torch.cat([h.amax(1), h.mean(1)], 1))


train = DataLoader(Clouds(1200, True), batch_size=50, shuffle=True)
val = DataLoader(Clouds(500, False), batch_size=250)
model = PointNet()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(16):
    model.train()
    right = 0
    for cloud, label in train:
        logits = model(cloud)
        loss = nn.functional.cross_entropy(logits, label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        right += (logits.argmax(1) == label).sum().item()
    model.eval()
    with torch.no_grad():
        held = sum((model(c).argmax(1) == k).sum().item() for c, k in val) / len(val.dataset)
    if epoch % 3 == 0:
        print(
            f"epoch {epoch + 1}: loss {loss.item():.4f}, train accuracy {right / 1200:.4f}, "
            f"validation accuracy {held:.4f}"
        )
print(f"validation accuracy {held:.4f}")
