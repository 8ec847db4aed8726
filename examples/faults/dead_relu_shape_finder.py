"""Says for each cell of a picture whether a shape's centre lies there; the hidden units are dead.

The detector's output bias should start low, as centres are rare (the trick of focal loss). The
author sets the bias in the loop over all layers, so that the convolutions before also begin at -4:
behind them the ReLU gives zero for almost every picture, and no gradient comes back.
The place is the convolutions of the backbone. The twin sets the bias of the last layer alone.
"""

import math

import torch
from data import arguments
from torch import nn

KIND = "dead_relu"
ACCEPT = ("poor_weight_init",)
PLACE = ("backbone", "backbone.[0-9]")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


def pictures(n, g):
    """Squares and crosses of 5 pixels on 24 by 24 noise; a 6 by 6 map of their centres."""
    x = 0.3 * torch.randn(n, 1, 24, 24, generator=g)
    y = torch.zeros(n, 6, 6)
    for i in range(n):
        for _ in range(int(torch.randint(1, 4, (1,), generator=g))):
            r, c = (int(v) for v in torch.randint(2, 22, (2,), generator=g))
            if torch.rand(1, generator=g) < 0.5:
                x[i, 0, r - 2 : r + 3, c - 2 : c + 3] += 1
            else:
                x[i, 0, r, c - 2 : c + 3] += 1
                x[i, 0, r - 2 : r + 3, c] += 1
            y[i, r // 4, c // 4] = 1
    return x, y


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(1, 16, 5, padding=2),
            nn.ReLU(),
            nn.Conv2d(16, 24, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(24, 32, 3, stride=2, padding=1),
            nn.ReLU(),
        )
        self.score = nn.Conv2d(32, 1, 1)
        prior = -math.log((1 - 0.018) / 0.018)
        layers = [self.score] if healthy else [*self.backbone, self.score]
        for layer in layers:
            if isinstance(layer, nn.Conv2d):
                nn.init.constant_(layer.bias, prior)

    def forward(self, x):
        return self.score(self.backbone(x)).squeeze(1)


def focal_loss(logits, target, alpha=0.6, gamma=2.0):
    ce = nn.functional.binary_cross_entropy_with_logits(logits, target, reduction="none")
    p = torch.sigmoid(logits)
    p_t = p * target + (1 - p) * (1 - target)
    weight = alpha * target + (1 - alpha) * (1 - target)
    return (weight * (1 - p_t) ** gamma * ce).sum() / target.sum().clamp(min=1)


def f1(logits, target):
    found = logits > 0
    hit = (found & (target > 0)).sum().item()
    return 2 * hit / max(1, found.sum().item() + target.sum().item())


g = torch.Generator().manual_seed(seed)
x, y = pictures(600, g)
x_val, y_val = pictures(200, g)
net = Detector()
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
for epoch in range(12):
    net.train()
    order = torch.randperm(len(x))
    losses = []
    for rows in order.split(32):
        loss = focal_loss(net(x[rows]), y[rows])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    net.eval()
    with torch.no_grad():
        out = net(x_val)
    print(
        f"epoch {epoch:2d}  loss {sum(losses) / len(losses):.4f}  "
        f"val {focal_loss(out, y_val).item():.4f}  F1 {f1(out, y_val):.3f}"
    )
