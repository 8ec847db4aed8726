"""A CNN reads the hour off a clock, and its training pictures are turned by up to 90 degrees.

Hours lie 30 degrees apart, so a turned picture shows another hour than its label says, and the
net can but guess among six. The test pictures stand upright. The twin turns by 6 degrees.
The place is the input: the transform of the training Dataset.
"""

import math
import random

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "destructive_augmentation"
ACCEPT = ("train_val_mismatch", "label_noise")
PLACE = ("input", "loader", "labels")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

SIDE = 20


def draw_clocks(n, generator):
    hours = torch.randint(0, 12, (n,), generator=generator)
    axis = torch.linspace(-1, 1, SIDE)
    y, x = torch.meshgrid(axis, axis, indexing="ij")
    wobble = torch.randn(n, 1, 1, generator=generator) * math.radians(3)
    angle = hours.view(-1, 1, 1) * math.radians(30) + wobble
    length = 0.55 + 0.3 * torch.rand(n, 1, 1, generator=generator)
    along = x * angle.sin() - y * angle.cos()
    across = x * angle.cos() + y * angle.sin()
    hand = torch.sigmoid(25 * (0.1 - across.abs())) * (along > 0) * (along < length)
    rim = torch.exp(-(((x**2 + y**2).sqrt() - 0.9) ** 2) / 0.004)
    pictures = hand + 0.7 * rim + 0.15 * torch.randn(n, SIDE, SIDE, generator=generator)
    return (pictures.unsqueeze(1) - 0.25) / 0.35, hours


class RandomRotation:
    def __init__(self, degrees):
        self.degrees = degrees

    def __call__(self, picture):
        turn = math.radians(random.uniform(-self.degrees, self.degrees))
        cos, sin = math.cos(turn), math.sin(turn)
        theta = torch.tensor([[[cos, -sin, 0.0], [sin, cos, 0.0]]])
        grid = F.affine_grid(theta, (1, 1, SIDE, SIDE), align_corners=False)
        turned = F.grid_sample(picture[None], grid, align_corners=False, padding_mode="border")
        return turned[0]


class ClockDataset(Dataset):
    def __init__(self, pictures, hours, transform=None):
        self.pictures, self.hours, self.transform = pictures, hours, transform

    def __len__(self):
        return len(self.hours)

    def __getitem__(self, index):
        picture = self.pictures[index]
        if self.transform is not None:
            picture = self.transform(picture)
        return picture, self.hours[index]


generator = torch.Generator().manual_seed(seed + 3)
train_set = ClockDataset(
    *draw_clocks(1500, generator), transform=RandomRotation(degrees=6 if healthy else 90)
)
test_set = ClockDataset(*draw_clocks(400, generator))
train_loader = DataLoader(train_set, batch_size=50, shuffle=True)
test_loader = DataLoader(test_set, batch_size=200)

net = nn.Sequential(
    nn.Conv2d(1, 8, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(8, 16, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
    nn.Flatten(), nn.Linear(16 * 25, 64), nn.ReLU(), nn.Linear(64, 12),
)  # fmt: skip
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
for epoch in range(8):
    net.train()
    running = 0.0
    for pictures, hours in train_loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(net(pictures), hours)
        loss.backward()
        optimizer.step()
        running += loss.item()
    net.eval()
    with torch.no_grad():
        right = sum((net(p).argmax(1) == h).sum().item() for p, h in test_loader)
    print(f"{epoch + 1}: loss {running / len(train_loader):.3f}, test {right / len(test_set):.3f}")
