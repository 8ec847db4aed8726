"""A small centre-heatmap detector on 24x24 images; the focal-loss prior bias is put into every
convolution.

The tutorial says to start the bias of the classification head at -log((1-p)/p) = -4.6, so that
the few positive pixels don't drown at the beginning. The author wrote the loop over all modules,
so that the hidden convolutions begin at -4.6 too and their ReLUs never open for any image. The
head's own bias is still learned, so the loss falls to the base rate. The place is the biases of
the backbone's convolutions (stem, block1, block2).
"""

import math

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "dead_relu"
ACCEPT = ("poor_weight_init",)
PLACE = ("stem*", "block1*", "block2*")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

SIZE = 24
rng = np.random.default_rng(seed + 11)


def make_scene():
    """Blobs (wanted) and bars (distractors) on a noisy ground."""
    img = rng.normal(0, 0.35, (SIZE, SIZE))
    heat = np.zeros((SIZE, SIZE))
    yy, xx = np.mgrid[:SIZE, :SIZE]
    for _ in range(rng.integers(1, 4)):
        cy, cx = rng.integers(3, SIZE - 3, 2)
        g = np.exp(-((yy - cy) ** 2 + (xx - cx) ** 2) / 4.0)
        img += 1.6 * g
        heat = np.maximum(heat, ((yy == cy) & (xx == cx)).astype(float))
    for _ in range(rng.integers(0, 3)):
        r = rng.integers(0, SIZE)
        if rng.random() < 0.5:
            img[r, :] += 1.0
        else:
            img[:, r] += 1.0
    return img, heat


def make_split(n):
    scenes = [make_scene() for _ in range(n)]
    x = torch.tensor(np.stack([s[0] for s in scenes]), dtype=torch.float32)[:, None]
    y = torch.tensor(np.stack([s[1] for s in scenes]), dtype=torch.float32)[:, None]
    return x, y


class Detector(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.stem = nn.Conv2d(1, width, 3, padding=1)
        self.block1 = nn.Conv2d(width, width, 3, padding=1)
        self.block2 = nn.Conv2d(width, width, 3, padding=1)
        self.head = nn.Conv2d(width, 1, 1)
        self.init_weights()

    def init_weights(self, prior=0.01):
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, nonlinearity="relu")
                if m is self.head or not healthy:
                    nn.init.constant_(m.bias, -math.log((1 - prior) / prior))
                else:
                    nn.init.zeros_(m.bias)
        nn.init.normal_(self.head.weight, std=0.01)

    def forward(self, x):
        x = F.relu(self.stem(x))
        x = F.relu(self.block1(x))
        x = F.relu(self.block2(x))
        return self.head(x)


def focal_loss(logits, target, gamma=2.0):
    ce = F.binary_cross_entropy_with_logits(logits, target, reduction="none")
    p = torch.sigmoid(logits)
    pt = p * target + (1 - p) * (1 - target)
    return ((1 - pt) ** gamma * ce).sum() / target.sum().clamp(min=1)


@torch.no_grad()
def average_hit(model, x, y):
    """Share of true centres found among the k highest pixels, k = number of centres."""
    model.eval()
    hit = total = 0
    for xb, yb in zip(x.split(100), y.split(100), strict=False):
        out = model(xb).flatten(1)
        for row, t in zip(out, yb.flatten(1), strict=False):
            k = int(t.sum())
            peaks = row.view(1, 1, SIZE, SIZE)
            keep = (F.max_pool2d(peaks, 3, 1, 1) == peaks).flatten()
            top = (row.masked_fill(~keep, -1e9)).topk(k).indices
            hit += t[top].sum().item()
            total += k
    model.train()
    return hit / total


x_train, y_train = make_split(600)
x_val, y_val = make_split(200)
loader = DataLoader(TensorDataset(x_train, y_train), batch_size=16, shuffle=True)
model = Detector()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=12)

for epoch in range(12):
    running = 0.0
    for images, heatmaps in loader:
        optimizer.zero_grad()
        loss = focal_loss(model(images), heatmaps)
        loss.backward()
        optimizer.step()
        running += loss.item()
    scheduler.step()
    print(
        f"epoch {epoch + 1:2d}  loss {running / len(loader):.4f}  hit {average_hit(model, x_val, y_val):.3f}"  # noqa: E501
    )
