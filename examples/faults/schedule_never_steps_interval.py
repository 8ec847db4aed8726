"""A trainer of one's own with a one-cycle schedule, whose interval ("epoch" or "batch") comes from
the settings. The settings say "step", as in another library, and the trainer compares with "batch".

Neither branch is taken: the rate stays where one-cycle starts, at a twenty-fifth of the peak, and
the segmentation of the shapes gets nowhere near what it could be. The place is the optimizer.
"""

from dataclasses import dataclass

import torch
from data import arguments
from torch import nn
from torch.nn import functional as F

KIND = "schedule_never_steps"
ACCEPT = ()
PLACE = ("optimizer", "loop")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


@dataclass
class Settings:
    epochs: int = 10
    batch: int = 16
    max_lr: float = 4e-3
    interval: str = "batch" if healthy else "step"


class UNet(nn.Module):
    def __init__(self, c=8):
        super().__init__()
        self.down1 = nn.Conv2d(1, c, 3, padding=1)
        self.down2 = nn.Conv2d(c, 2 * c, 3, stride=2, padding=1)
        self.middle = nn.Conv2d(2 * c, 2 * c, 3, padding=1)
        self.up = nn.ConvTranspose2d(2 * c, c, 2, stride=2)
        self.out = nn.Conv2d(2 * c, 3, 3, padding=1)

    def forward(self, x):
        a = F.relu(self.down1(x))
        b = F.relu(self.middle(F.relu(self.down2(a))))
        return self.out(torch.cat([a, F.relu(self.up(b))], 1))


def pictures(n, g, size=16):
    """Background 0, a disc 1, a square 2."""
    i = torch.arange(size).float()
    cx, cy, sx, sy = torch.rand(4, n, 1, 1, generator=g) * (size - 6) + 3
    disc = (i[None, None] - cx) ** 2 + (i[None, :, None] - cy) ** 2 < 9
    square = ((i[None, None] - sx).abs() < 2.6) & ((i[None, :, None] - sy).abs() < 2.6)
    y = torch.where(square, 2, torch.where(disc, 1, 0))
    x = (y > 0).float()[:, None] + 0.25 * torch.randn(n, 1, size, size, generator=g)
    return x, y


class Trainer:
    def __init__(self, model, settings, x, y):
        self.model, self.s, self.x, self.y = model, settings, x, y
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=settings.max_lr)
        per_epoch = -(-len(x) // settings.batch)
        self.scheduler = torch.optim.lr_scheduler.OneCycleLR(
            self.optimizer, max_lr=settings.max_lr, total_steps=per_epoch * settings.epochs + 1
        )

    def train_batch(self, rows):
        loss = F.cross_entropy(self.model(self.x[rows]), self.y[rows])
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        if self.s.interval == "batch":
            self.scheduler.step()
        return loss.item()

    def fit(self, x_val, y_val):
        for epoch in range(self.s.epochs):
            self.model.train()
            losses = [
                self.train_batch(rows) for rows in torch.randperm(len(self.x)).split(self.s.batch)
            ]
            if self.s.interval == "epoch":
                self.scheduler.step()
            self.model.eval()
            with torch.no_grad():
                out = self.model(x_val)
            hit = out.argmax(1)
            iou = (
                sum(
                    (((hit == c) & (y_val == c)).sum() / ((hit == c) | (y_val == c)).sum()).item()
                    for c in range(3)
                )
                / 3
            )
            print(
                f"epoch {epoch}: train {sum(losses) / len(losses):.4f} "
                f"val {F.cross_entropy(out, y_val).item():.4f} iou {iou:.3f}"
            )


g = torch.Generator().manual_seed(50 + seed)
x, y = pictures(480, g)
x_val, y_val = pictures(200, g)
Trainer(UNet(), Settings(), x, y).fit(x_val, y_val)
