"""Where is the parcel in the camera image? A box regression CNN, validated in training mode.

`evaluate` has no `model.eval()`: dropout is active and batch norm uses the small validation
batches (and moves its running averages with them), so the validation error is far too high and
noisy, and the checkpoint is picked by it. The place is the validation loop (dropout and batch
norm modules).
"""

import copy
from dataclasses import dataclass

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "train_mode_in_validation"
ACCEPT = ()
PLACE = ("loop", "*", "")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


@dataclass
class Config:
    images: int = 1600
    side: int = 20
    batch_size: int = 50
    val_batch: int = 8
    epochs: int = 24
    lr: float = 4e-3
    dropout: float = 0.2


def camera(cfg):
    """A bright box on a belt with clutter; the target is centre and size, relative to the image."""
    r = np.random.default_rng(50 + seed)
    x = r.normal(0, 0.3, (cfg.images, cfg.side, cfg.side))
    y = np.zeros((cfg.images, 4))
    for image, box in zip(x, y, strict=True):
        image[...] += r.uniform(-0.5, 0.5)
        h, w = r.integers(4, 10, 2)
        top, left = r.integers(0, cfg.side - h), r.integers(0, cfg.side - w)
        image[top : top + h, left : left + w] += r.uniform(0.7, 1.3)
        for _ in range(r.integers(0, 4)):
            a, b = r.integers(0, cfg.side - 2, 2)
            image[a : a + 2, b : b + 2] += 0.8
        box[:] = (left + w / 2, top + h / 2, w, h)
    return torch.tensor(x, dtype=torch.float32).unsqueeze(1), torch.tensor(
        y, dtype=torch.float32
    ) / cfg.side


class Locator(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 12, 3, padding=1),
            nn.BatchNorm2d(12),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(12, 24, 3, padding=1),
            nn.BatchNorm2d(24),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
        )
        self.box = nn.Sequential(
            nn.Linear(24 * 25, 128), nn.ReLU(), nn.Dropout(cfg.dropout), nn.Linear(128, 4)
        )

    def forward(self, x):
        return self.box(self.features(x))


def iou(p, t):
    low = torch.maximum(p[:, :2] - p[:, 2:] / 2, t[:, :2] - t[:, 2:] / 2)
    high = torch.minimum(p[:, :2] + p[:, 2:] / 2, t[:, :2] + t[:, 2:] / 2)
    common = (high - low).clamp_min(0).prod(1)
    return common / (p[:, 2:].clamp_min(0).prod(1) + t[:, 2:].prod(1) - common)


def evaluate(model, loader):
    if healthy:
        model.eval()
    loss, overlap = 0.0, 0.0
    with torch.no_grad():
        for x, y in loader:
            out = model(x)
            loss += nn.functional.smooth_l1_loss(out, y, beta=0.1).item() * len(y)
            overlap += iou(out, y).sum().item()
    return loss / len(loader.dataset), overlap / len(loader.dataset)


def fit(cfg):
    x, y = camera(cfg)
    cut = int(0.75 * cfg.images)
    x = (x - x[:cut].mean()) / x[:cut].std()
    train = DataLoader(TensorDataset(x[:cut], y[:cut]), cfg.batch_size, shuffle=True)
    valid = DataLoader(TensorDataset(x[cut:], y[cut:]), cfg.val_batch)
    model = Locator(cfg)
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2 * cfg.lr, cfg.epochs * len(train))
    best, state = float("inf"), None
    for epoch in range(cfg.epochs):
        model.train()
        total = 0.0
        for image, box in train:
            loss = nn.functional.smooth_l1_loss(model(image), box, beta=0.1)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            total += loss.item() / len(train)
        val, overlap = evaluate(model, valid)
        print(f"epoch {epoch:2d}  train {total:.5f}  val {val:.5f}  IoU {overlap:.4f}")
        if val < best:
            best, state = val, copy.deepcopy(model.state_dict())
    model.load_state_dict(state)
    val, overlap = evaluate(model, valid)
    print(f"best val {val:.5f}  IoU {overlap:.4f}")


fit(Config())
