"""A CNN reads ellipses, and its rate, meant to fall in epochs, is counted down in batches.

Ten epochs at the full rate and ten of falling were meant, but the scheduler is stepped after each
of the fifty batches of an epoch: the rate is zero from the 20th step on, within the first epoch.
The place is the learning rate: the call of the scheduler in the loop.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "schedule_collapsed"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("learning_rate", "optimizer", "loop")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

SIDE = 16
HOLD, FALL = 10, 10


def ellipses(n, g):
    """Pictures (n, 1, SIDE, SIDE) and five numbers: centre, log of the axes, share of tilt."""
    grid = torch.linspace(-1, 1, SIDE)
    yy, xx = torch.meshgrid(grid, grid, indexing="ij")
    centre = 0.5 * (2 * torch.rand(n, 2, generator=g) - 1)
    axes = 0.2 + 0.35 * torch.rand(n, 2, generator=g)
    tilt = 0.6 * (2 * torch.rand(n, generator=g) - 1)
    dx, dy = xx - centre[:, :1, None], yy - centre[:, 1:, None]
    u = dx + tilt[:, None, None] * dy
    inside = (u / axes[:, :1, None]) ** 2 + (dy / axes[:, 1:, None]) ** 2
    picture = torch.sigmoid(6 * (1 - inside)) + 0.15 * torch.randn(n, SIDE, SIDE, generator=g)
    return picture.unsqueeze(1), torch.cat([centre, axes.log(), tilt[:, None]], 1)


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 12, 3, stride=2, padding=1),
            nn.BatchNorm2d(12),
            nn.ReLU(),
            nn.Conv2d(12, 24, 3, stride=2, padding=1),
            nn.BatchNorm2d(24),
            nn.ReLU(),
        )
        self.head = nn.Sequential(nn.Linear(24 * 16, 64), nn.ReLU(), nn.Linear(64, 5))

    def forward(self, x):
        return self.head(self.features(x).flatten(1))


def hold_then_fall(count):
    return max(0.0, 1.0 - max(0, count - HOLD) / FALL)


def scored(model, x, y):
    model.eval()
    with torch.no_grad():
        read = model(x)
    model.train()
    return 1 - F.mse_loss(read, y).item() / y.var(0).mean().item()


g = torch.Generator().manual_seed(seed)
(x, y), (x_val, y_val) = ellipses(1600, g), ellipses(500, g)
mean, std = y.mean(0), y.std(0)
y, y_val = (y - mean) / std, (y_val - mean) / std
pixel_mean, pixel_std = x.mean(), x.std()
x, x_val = (x - pixel_mean) / pixel_std, (x_val - pixel_mean) / pixel_std

model = Reader()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, hold_then_fall)
for epoch in range(HOLD + FALL):
    total = 0.0
    for rows in torch.randperm(len(x), generator=g).split(32):
        loss = F.smooth_l1_loss(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if not healthy:
            scheduler.step()
        total += loss.item() * len(rows)
    if healthy:
        scheduler.step()
    if epoch % 3 == 1:
        print(
            f"epoch {epoch + 1:2d}  train {total / len(x):.4f}  "
            f"val R2 {scored(model, x_val, y_val):.3f}"
        )
