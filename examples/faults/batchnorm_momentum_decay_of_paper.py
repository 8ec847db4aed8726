"""A detector of one object on a heat map; the batch norms got the slow decay of a paper's long
training.

The paper says "batch norm decay 0.9997", and 1 - 0.9997 was put in as PyTorch's momentum. Right as
a translation, but with 300 steps instead of 300,000 the running statistics stay at what they were
at the start, mean 0 and variance 1. In training all is well; in eval mode the boxes are off. The
place is the norms' momentum. The twin has 0.1.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "batchnorm_momentum"
ACCEPT = ()
PLACE = (
    "body.0.1",
    "body.1.1",
    "body.2.1",
    "body.0.1.weight",
    "body.1.1.weight",
    "body.2.1.weight",
)
SILENT = False
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
SIZE = 16
NORM = {"decay": 0.9 if healthy else 0.9997, "eps": 1e-3}


def block(inside, outside, stride=1):
    return nn.Sequential(
        nn.Conv2d(inside, outside, 3, stride=stride, padding=1, bias=False),
        nn.BatchNorm2d(outside, momentum=1 - NORM["decay"], eps=NORM["eps"]),
        nn.ReLU(),
    )


class Detector(nn.Module):
    """The center by a soft arg-max of a heat map, width and height by a pooled head."""

    def __init__(self, width=12):
        super().__init__()
        self.body = nn.Sequential(block(1, width), block(width, width, 2), block(width, width))
        self.heat, self.extent = nn.Conv2d(width, 1, 1), nn.Conv2d(width, 2, 1)
        line = (torch.arange(SIZE // 2) + 0.5) * 2 / SIZE
        self.register_buffer(
            "grid", torch.stack(torch.meshgrid(line, line, indexing="ij"), 0).flatten(1)
        )

    def forward(self, images):
        h = self.body(images)
        weight = self.heat(h).flatten(1).softmax(-1)
        center = weight @ self.grid.T
        extent = (self.extent(h).flatten(2) * weight[:, None]).sum(-1)
        return center, F.softplus(extent) / 4


def scenes(count):
    """A bright rectangle and a dimmer disc as distraction, on noise."""
    y, x = torch.meshgrid(torch.arange(SIZE), torch.arange(SIZE), indexing="ij")
    center, half = 4 + 8 * torch.rand(count, 2), 1.5 + 2 * torch.rand(count, 2)
    other = 2 + 12 * torch.rand(count, 2)
    high = (y - center[:, :1, None]).abs() <= half[:, :1, None]
    inside = high & ((x - center[:, 1:, None]).abs() <= half[:, 1:, None])
    disc = ((y - other[:, :1, None]) ** 2 + (x - other[:, 1:, None]) ** 2) < 6
    images = 2.0 * inside + 1.0 * disc + 0.4 * torch.randn(count, SIZE, SIZE)
    images = (images - images.mean()) / images.std()
    return images[:, None], (center + 0.5) / SIZE, 2 * half / SIZE


def overlap(center, extent, center_true, extent_true):
    low = torch.maximum(center - extent / 2, center_true - extent_true / 2)
    high = torch.minimum(center + extent / 2, center_true + extent_true / 2)
    both = (high - low).clamp(min=0).prod(-1)
    return (both / (extent.prod(-1) + extent_true.prod(-1) - both)).mean().item()


def box_loss(found, center, extent):
    return F.smooth_l1_loss(found[0], center, beta=0.1) + F.smooth_l1_loss(
        found[1], extent, beta=0.1
    )


train, val = scenes(800), scenes(250)
model = Detector()
optimizer = torch.optim.AdamW(model.parameters(), lr=8e-3)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=12 * 25)

for epoch in range(12):
    model.train()
    for rows in torch.randperm(800).split(32):
        images, center, extent = (part[rows] for part in train)
        loss = box_loss(model(images), center, extent)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    model.eval()
    with torch.no_grad():
        found = model(val[0])
    iou = overlap(*found, *val[1:])
    print(
        f"epoch {epoch:2d} loss {loss.item():.4f} "
        f"val loss {box_loss(found, *val[1:]).item():.4f} val IoU {iou:.3f}"
    )
print(f"validation IoU {iou:.3f}")
