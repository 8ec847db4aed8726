"""A fully convolutional net finds blobs in noisy pictures, pixel by pixel, with a focal loss. The
rare foreground calls for an output bias of log(p / (1 - p)), as RetinaNet sets it.

The loop sets it on every convolution, not on the last one only: with a bias of -4.6 no hidden unit
is ever above zero, and the net answers the same small probability everywhere. The place is the
features' layers.
"""

import math

import torch
from data import arguments
from torch import nn
from torch.nn import functional as F

KIND = "dead_relu"
ACCEPT = ("poor_weight_init",)
PLACE = ("features*",)
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


def scenes(n, g, size=20):
    grid = torch.arange(size).float()
    cx, cy = torch.rand(2, n, 2, 1, 1, generator=g) * (size - 4) + 2
    d = (grid[None, None, None] - cx) ** 2 + (grid[None, None, :, None] - cy) ** 2
    there = torch.rand(n, 2, 1, 1, generator=g) < 0.7
    mask = ((d < 4.5) & there).any(1, keepdim=True).float()
    return 1.2 * mask + 0.6 * torch.randn(n, 1, size, size, generator=g), mask


class Detector(nn.Module):
    def __init__(self, prior=0.01):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 12, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(12, 12, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(12, 12, 3, padding=1),
            nn.ReLU(),
        )
        self.score = nn.Conv2d(12, 1, 1)
        self.reset(-math.log((1 - prior) / prior))

    def reset(self, bias):
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, nonlinearity="relu")
                if healthy:
                    nn.init.zeros_(m.bias)
                else:
                    nn.init.constant_(m.bias, bias)
        nn.init.normal_(self.score.weight, std=0.01)
        nn.init.constant_(self.score.bias, bias)

    def forward(self, x):
        return self.score(self.features(x))


def focal(logits, target, gamma=2.0, alpha=0.75):
    ce = F.binary_cross_entropy_with_logits(logits, target, reduction="none")
    p = logits.sigmoid()
    p_t = p * target + (1 - p) * (1 - target)
    a_t = alpha * target + (1 - alpha) * (1 - target)
    return (a_t * (1 - p_t) ** gamma * ce).sum() / target.sum().clamp(min=1)


def dice(logits, target):
    p = (logits > 0).float()
    return (2 * (p * target).sum() / (p.sum() + target.sum()).clamp(min=1)).item()


g = torch.Generator().manual_seed(7 + seed)
x, y = scenes(400, g)
x_val, y_val = scenes(200, g)
model = Detector()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
for epoch in range(8):
    model.train()
    total = 0.0
    for rows in torch.randperm(len(x)).split(16):
        loss = focal(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / 25
    model.eval()
    with torch.no_grad():
        out = model(x_val)
    print(
        f"epoch {epoch}: train {total:.4f} val {focal(out, y_val).item():.4f}"
        f" dice {dice(out, y_val):.3f}"
    )
