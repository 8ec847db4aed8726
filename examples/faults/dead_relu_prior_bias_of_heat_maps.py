"""Cells found in microscope fields by a heat-map head; RetinaNet's prior bias went into every
convolution.

The last layer of a dense detector begins with a bias of -log((1 - p) / p) = -4.6, so that it first
says "nothing here". `init_weights` loops over all convolutions, and behind a bias of -4.6 every
ReLU is off for every input. The place is the convolutions before the last. The twin gives that
bias to the output alone.
"""

import math

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "dead_relu"
ACCEPT = ("poor_weight_init",)
PLACE = (
    "backbone",
    "backbone.0",
    "backbone.2",
    "backbone.4",
    "backbone.0.bias",
    "backbone.2.bias",
    "backbone.4.bias",
    "backbone.1",
    "backbone.3",
    "backbone.5",
)
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


def fields(n, size=24):
    """Ring-shaped cells among blobs of dirt.

    The target is a heat map on a grid of a quarter of the size.
    """
    yy, xx = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
    x, heat = 0.3 * torch.randn(n, 1, size, size), torch.zeros(n, size // 4, size // 4)
    for i in range(n):
        for k in range(int(torch.randint(2, 6, ()))):
            cy, cx = (2 + torch.rand(2) * (size - 4)).tolist()
            d = ((yy - cy) ** 2 + (xx - cx) ** 2).sqrt()
            if k % 2:
                x[i, 0] += 1.5 * torch.exp(-d)
            else:
                x[i, 0] += 1.2 * torch.exp(-((d - 2.5) ** 2))
                heat[i, int(cy) // 4, int(cx) // 4] = 1
    return x, heat


class CellDetector(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(1, 12, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(12, 24, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(24, 24, 3, stride=2, padding=1),
            nn.ReLU(),
        )
        self.heat = nn.Conv2d(24, 1, 3, padding=1)
        self.init_weights()

    def init_weights(self, prior=0.01):
        layers = [self.heat] if healthy else [m for m in self.modules() if isinstance(m, nn.Conv2d)]
        for layer in layers:
            nn.init.constant_(layer.bias, -math.log((1 - prior) / prior))

    def forward(self, x):
        return self.heat(self.backbone(x)).squeeze(1)


def focal_loss(logits, target, gamma=2.0, alpha=0.75):
    bce = nn.functional.binary_cross_entropy_with_logits(logits, target, reduction="none")
    weight = torch.where(target > 0, alpha, 1 - alpha)
    return (weight * (1 - torch.exp(-bce)) ** gamma * bce).sum() / target.sum().clamp(min=1)


x, heat = fields(600)
x_val, heat_val = fields(200)
loader = DataLoader(TensorDataset(x, heat), 20, shuffle=True)
model = CellDetector()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(18):
    model.train()
    total = 0.0
    for xb, yb in loader:
        loss = focal_loss(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / len(loader)
    model.eval()
    with torch.no_grad():
        out = model(x_val)
        found = out > -0.4
        f1 = 2 * (found * heat_val).sum() / (found.sum() + heat_val.sum())
    print(
        f"epoch {epoch:2d} loss {total:.4f} val loss {focal_loss(out, heat_val):.4f} "
        f"val F1 {f1:.3f}"
    )
