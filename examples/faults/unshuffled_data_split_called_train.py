"""Shapes of scanned parts from point clouds; the training set is read class after class.

The parts lie in one folder per shape and are listed folder by folder. The loader is made with
`shuffle=(split == "training")`, and the splits are called "train" and "val" since last month. So
each epoch shows all boxes, then all cones, and so on, and the network forgets what it saw first.
The place is the data. The twin compares with the right name.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "unshuffled_data"
ACCEPT = ()
PLACE = ("input*", "loader", "label*", "loss*", "loop")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
POINTS = 48
FOLDERS = ["ball", "box", "cone", "cylinder", "plate", "ring"]


def part(shape, g):
    """Points on a surface of random size, turned about the vertical, with the scanner's noise."""
    u, v, w = torch.rand(3, POINTS, generator=g)
    a = 6.2832 * u
    if shape == "ball":
        z = 2 * v - 1
        xyz = torch.stack([(1 - z**2).sqrt() * a.cos(), (1 - z**2).sqrt() * a.sin(), z])
    elif shape == "box":
        xyz = torch.stack([u, v, w]) * 2 - 1
        axis = torch.randint(0, 3, (POINTS,), generator=g)
        xyz[axis, torch.arange(POINTS)] = xyz[axis, torch.arange(POINTS)].sign()
    elif shape == "cone":
        xyz = torch.stack([v.sqrt() * a.cos(), v.sqrt() * a.sin(), 1 - 2 * v.sqrt()])
    elif shape == "cylinder":
        xyz = torch.stack([a.cos(), a.sin(), 2 * v - 1])
    elif shape == "plate":
        xyz = torch.stack([2 * u - 1, 2 * v - 1, 0.3 * (w - 0.5)])
    else:
        b = 6.2832 * v
        xyz = torch.stack(
            [(1 + 0.3 * b.cos()) * a.cos(), (1 + 0.3 * b.cos()) * a.sin(), 0.3 * b.sin()]
        )
    size = 0.6 + 0.5 * torch.rand(3, 1, generator=g)
    return (xyz * size).T + 0.08 * torch.randn(POINTS, 3, generator=g)


class Parts(Dataset):
    def __init__(self, per_folder, g):
        self.samples = [
            (part(name, g), label) for label, name in enumerate(FOLDERS) for _ in range(per_folder)
        ]

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, i):
        return self.samples[i]


def get_loader(split, per_folder, g):
    shuffle = split == ("train" if healthy else "training")
    return DataLoader(Parts(per_folder, g), batch_size=30, shuffle=shuffle)


class PointNet(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.point = nn.Sequential(
            nn.Linear(3, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()
        )
        self.shape = nn.Sequential(nn.Linear(width, 48), nn.ReLU(), nn.Linear(48, len(FOLDERS)))

    def forward(self, cloud):
        return self.shape(self.point(cloud).max(1).values)


g = torch.Generator().manual_seed(seed)
train_loader, val_loader = get_loader("train", 150, g), get_loader("val", 60, g)
model = PointNet()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(14):
    model.train()
    total = 0.0
    for cloud, label in train_loader:
        loss = nn.functional.cross_entropy(model(cloud), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        hits = torch.cat([model(cloud).argmax(1) == label for cloud, label in val_loader])
    print(f"epoch {epoch}: loss {total / len(train_loader):.3f} accuracy {hits.float().mean():.3f}")
