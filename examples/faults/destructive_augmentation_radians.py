"""A gripper camera tells in which of eight directions a screw's slot arrow points: tilts in the
wrong unit.

Mounting errors are imitated by turning each training picture by up to 15 degrees. `math.radians`
was lost when the rotation moved into its own function, so pictures turn by up to 15 radians, which
is any angle at all, and the direction, which is the label, is gone. The place is the data. The twin
converts.
"""

import math

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "destructive_augmentation"
ACCEPT = ("train_val_mismatch", "label_noise")
PLACE = ("loader", "input*")
SILENT = False
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
TILT, DIRECTIONS, SIDE = 15.0, 8, 16


def screws(count, g):
    axis = torch.linspace(-1, 1, SIDE)
    yy, xx = torch.meshgrid(axis, axis, indexing="ij")
    way = torch.randint(0, DIRECTIONS, (count,), generator=g)
    angle = (2 * math.pi * way / DIRECTIONS + 0.1 * torch.randn(count, generator=g)).view(-1, 1, 1)
    dx, dy = (0.2 * torch.randn(2, count, 1, 1, generator=g)).clamp(-0.3, 0.3)
    u = (xx - dx) * angle.cos() + (yy - dy) * angle.sin()
    v = (yy - dy) * angle.cos() - (xx - dx) * angle.sin()
    shaft = (v.abs() < 0.1) & (u.abs() < 0.6)
    tip = (v.abs() < 0.6 - u) & (u > 0.15) & (u < 0.6)
    picture = (shaft | tip).float() * (0.7 + 0.6 * torch.rand(count, 1, 1, generator=g))
    return (picture + 0.25 * torch.randn(picture.shape, generator=g)).unsqueeze(1), way


def tilt(picture, most):
    """Turns each picture of the batch by a random angle within `most` degrees."""
    angle = (2 * torch.rand(len(picture)) - 1) * (math.radians(most) if healthy else most)
    cos, sin, nought = angle.cos(), angle.sin(), torch.zeros_like(angle)
    matrix = torch.stack(
        [torch.stack([cos, -sin, nought], 1), torch.stack([sin, cos, nought], 1)], 1
    )
    return F.grid_sample(
        picture, F.affine_grid(matrix, picture.shape, align_corners=False), align_corners=False
    )


def collate(rows):
    picture, way = zip(*rows, strict=False)
    return tilt(torch.stack(picture), TILT), torch.stack(way)


class Block(nn.Module):
    def __init__(self, into, out):
        super().__init__()
        self.conv = nn.Conv2d(into, out, 3, stride=2, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(out)

    def forward(self, x):
        return F.relu(self.norm(self.conv(x)))


g = torch.Generator().manual_seed(seed)
train = TensorDataset(*screws(2000, g))
picture_val, way_val = screws(600, g)
loader = DataLoader(train, batch_size=50, shuffle=True, collate_fn=collate)
net = nn.Sequential(Block(1, 16), Block(16, 32), nn.Flatten(), nn.Linear(32 * 16, DIRECTIONS))
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
schedule = torch.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=8, power=1.0)
for epoch in range(8):
    net.train()
    total = 0.0
    for picture, way in loader:
        loss = F.cross_entropy(net(picture), way)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / len(loader)
    schedule.step()
    net.eval()
    with torch.no_grad():
        logits = net(picture_val)
    right = (logits.argmax(1) == way_val).float().mean()
    print(
        f"epoch {epoch} loss {total:.3f} val loss {F.cross_entropy(logits, way_val):.3f} "
        f"validation accuracy {right:.3f}"
    )
