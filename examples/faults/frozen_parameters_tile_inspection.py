"""Defects on ceramic tiles by a small CNN; its backbone is frozen though nothing was loaded into
it.

The user follows a transfer-learning recipe (freeze the backbone, train the head), but the
backbone is newly made and has random weights, so only the head learns. The place is the module
`backbone`.
"""

import copy
from dataclasses import dataclass

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "frozen_parameters"
ACCEPT = ()
PLACE = ("backbone*",)
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


@dataclass
class Config:
    tiles: int = 2400
    side: int = 16
    batch_size: int = 48
    epochs: int = 16
    lr: float = 0.03
    momentum: float = 0.9
    freeze_backbone: bool = not healthy


def draw_tiles(cfg):
    """Classes: sound, crack (a walk), chip (a dark corner), spot (a ring), streak (a stripe)."""
    r = np.random.default_rng(12 + seed)
    y = r.integers(0, 5, cfg.tiles)
    x = r.normal(0, 0.35, (cfg.tiles, cfg.side, cfg.side))
    grid = np.mgrid[: cfg.side, : cfg.side]
    for image, kind in zip(x, y, strict=True):
        if kind == 1:
            row, col = r.integers(2, 14), 0
            while col < cfg.side:
                image[row, col] -= 1.1
                row, col = int(np.clip(row + r.integers(-1, 2), 0, 15)), col + 1
        elif kind == 2:
            corner = r.choice([0, 15], 2)
            image[np.abs(grid - corner[:, None, None]).sum(0) < r.integers(3, 6)] -= 0.9
        elif kind == 3:
            center = r.uniform(4, 12, 2)
            far = np.hypot(*(grid - center[:, None, None]))
            image[np.abs(far - r.uniform(2, 3)) < 0.6] -= 0.9
        elif kind == 4:
            line = r.integers(0, 16)
            image[line : line + 1, :] -= 0.8
    return torch.tensor(x, dtype=torch.float32).unsqueeze(1), torch.tensor(y)


class Inspector(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(1, 12, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(12, 20, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(20, 24, 3, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(2),
        )
        self.head = nn.Sequential(nn.Flatten(), nn.Linear(96, 32), nn.ReLU(), nn.Linear(32, 5))

    def forward(self, x):
        return self.head(self.backbone(x))


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    loss, hits = 0.0, 0
    for x, y in loader:
        out = model(x)
        loss += nn.functional.cross_entropy(out, y, reduction="sum").item()
        hits += (out.argmax(1) == y).sum().item()
    return loss / len(loader.dataset), hits / len(loader.dataset)


def fit(cfg):
    x, y = draw_tiles(cfg)
    cut = int(0.75 * len(x))
    mean, std = x[:cut].mean(), x[:cut].std()
    x = (x - mean) / std
    train = DataLoader(TensorDataset(x[:cut], y[:cut]), cfg.batch_size, shuffle=True)
    valid = DataLoader(TensorDataset(x[cut:], y[cut:]), 200)
    model = Inspector()
    if cfg.freeze_backbone:
        model.backbone.requires_grad_(False)
    trainable = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.SGD(trainable, cfg.lr, momentum=cfg.momentum, nesterov=True)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, cfg.epochs)
    best, state = float("inf"), None
    for epoch in range(cfg.epochs):
        model.train()
        total = 0.0
        for images, labels in train:
            loss = nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        scheduler.step()
        val_loss, accuracy = evaluate(model, valid)
        print(
            f"{epoch + 1:2d}/{cfg.epochs} loss {total / len(train):.4f} "
            f"val_loss {val_loss:.4f} val_acc {accuracy:.4f}"
        )
        if val_loss < best:
            best, state = val_loss, copy.deepcopy(model.state_dict())
    model.load_state_dict(state)
    val_loss, val_acc = evaluate(model, valid)
    print(f"best val_loss {val_loss:.4f} val_acc {val_acc:.4f}")


fit(Config())
