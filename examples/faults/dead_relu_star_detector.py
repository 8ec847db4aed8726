"""A CenterNet-like detector of stars in crowded fields; the units of its head are dead from the
start.

The prior of the heat map (a bias of -4.6, so that the first scores are near 0.01) is meant for
the last convolution of the head. The user's loop writes it into every convolution of the head, so
the ReLUs of the tower give zero for every pixel, get no gradient, and the heat map can't depend
on the image. The place is the tower of the head (head.tower.*).
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "dead_relu"
ACCEPT = ("poor_weight_init",)
PLACE = ("head.tower*", "head*")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


@dataclass
class Config:
    fields: int = 640
    val_fields: int = 128
    size: int = 32
    batch: int = 32
    epochs: int = 7
    lr: float = 2e-3
    prior: float = 0.01


def make_fields(n, size, rng):
    """Star fields: sky, Poisson-like noise, an extended galaxy now and then, and PSF-shaped stars."""  # noqa: E501
    yy, xx = np.mgrid[0:size, 0:size]
    imgs = np.zeros((n, 1, size, size), np.float32)
    heat = np.zeros((n, 1, size, size), np.float32)
    for i in range(n):
        sky = 1.0 + 0.3 * rng.random() + 0.01 * xx * rng.normal()
        for _ in range(rng.integers(0, 3)):  # galaxies are not to be found
            cx, cy, r = rng.uniform(4, size - 4), rng.uniform(4, size - 4), rng.uniform(2.5, 5)
            sky = sky + rng.uniform(0.5, 1.5) * np.exp(-np.hypot(xx - cx, yy - cy) / r)
        for _ in range(rng.integers(2, 7)):
            cx, cy = rng.uniform(2, size - 3, 2)
            flux = rng.lognormal(0.4, 0.5)
            sky = sky + flux * np.exp(-((xx - cx) ** 2 + (yy - cy) ** 2) / (2 * 1.1**2))
            px, py = int(round(cx)), int(round(cy))  # noqa: RUF046
            spot = np.exp(-((xx - px) ** 2 + (yy - py) ** 2) / (2 * 0.8**2))
            heat[i, 0] = np.maximum(heat[i, 0], spot)
        imgs[i, 0] = sky + 0.12 * np.sqrt(np.clip(sky, 0.1, None)) * rng.normal(size=(size, size))
    heat[heat < 0.02] = 0
    return torch.from_numpy(imgs), torch.from_numpy(heat)


class Backbone(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.stem = nn.Conv2d(1, width, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)

    def forward(self, x):
        x = F.relu(self.bn1(self.stem(x)))
        return F.relu(self.bn2(self.conv(x)) + x)


class Head(nn.Module):
    def __init__(self, width=16, prior=0.01):
        super().__init__()
        self.tower = nn.Sequential(
            nn.Conv2d(width, 24, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(24, 24, 1),
            nn.ReLU(),
        )
        self.score = nn.Conv2d(24, 1, 1)
        bias = -math.log((1 - prior) / prior)
        for m in self.modules():
            if isinstance(m, nn.Conv2d) and (not healthy or m is self.score):
                nn.init.constant_(m.bias, bias)

    def forward(self, x):
        return self.score(self.tower(x))


class StarNet(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.backbone = Backbone()
        self.head = Head(prior=cfg.prior)

    def forward(self, x):
        return self.head(self.backbone(x))


def heat_loss(logit, target):
    """Penalty-reduced focal loss of CornerNet."""
    p = logit.sigmoid().clamp(1e-4, 1 - 1e-4)
    pos = (target > 0.99).float()
    hit = -((1 - p) ** 2) * p.log() * pos
    miss = -((1 - target) ** 4) * p**2 * (1 - p).log() * (1 - pos)
    return (hit.sum() + miss.sum()) / pos.sum().clamp(min=1)


@torch.no_grad()
def validate(model, x, heat):
    model.eval()
    p = model(x).sigmoid()
    peak = (F.max_pool2d(p, 3, 1, 1) == p) & (p > 0.3)
    true = heat > 0.99
    near = F.max_pool2d(true.float(), 3, 1, 1) > 0
    tp = (peak & near).sum().item()
    found = (F.max_pool2d(peak.float(), 3, 1, 1) > 0) & true
    precision = tp / max(1, peak.sum().item())
    recall = found.sum().item() / true.sum().item()
    loss = heat_loss(model(x), heat).item()
    return loss, 2 * precision * recall / max(1e-9, precision + recall)


def main():
    cfg = Config()
    rng = np.random.default_rng(seed)
    x, heat = make_fields(cfg.fields + cfg.val_fields, cfg.size, rng)
    mean, std = x[: cfg.fields].mean(), x[: cfg.fields].std()
    x = (x - mean) / std
    xv, hv = x[cfg.fields :], heat[cfg.fields :]
    x, heat = x[: cfg.fields], heat[: cfg.fields]
    model = StarNet(cfg)
    opt = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    steps = cfg.epochs * (cfg.fields // cfg.batch)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, steps)
    for epoch in range(cfg.epochs):
        model.train()
        total = 0.0
        order = torch.randperm(cfg.fields)
        for rows in order.split(cfg.batch):
            loss = heat_loss(model(x[rows]), heat[rows])
            opt.zero_grad()
            loss.backward()
            opt.step()
            sched.step()
            total += loss.item()
        val_loss, f1 = validate(model, xv, hv)
        print(
            f"epoch {epoch:2d}  loss {total / len(order.split(cfg.batch)):.3f}  val {val_loss:.3f}  F1 {f1:.3f}"  # noqa: E501
        )


if __name__ == "__main__":
    main()
