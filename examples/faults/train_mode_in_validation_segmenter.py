"""A small encoder-decoder that segments cells in images, validated while its dropout and batch
norm are in training mode.

The user wraps the validation in no_grad and believes that this is all; model.eval() is missing,
so every validation score is of a network with two in five of its channels dropped. The place is
the loop (the validation).
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "train_mode_in_validation"
ACCEPT = ()
PLACE = ("loop", "drop*", "norm*", "")
SILENT = True
EXACT = True
EARLY = False
healthy, seed = arguments(__doc__)


def cells(n, seed, size=24):
    r = np.random.default_rng(seed)
    yy, xx = np.mgrid[:size, :size]
    images, masks = [], []
    for _ in range(n):
        mask = np.zeros((size, size), bool)
        for _ in range(r.integers(1, 5)):
            cx, cy, a, b = *r.uniform(3, size - 3, 2), *r.uniform(2, 4.5, 2)
            mask |= ((xx - cx) / a) ** 2 + ((yy - cy) / b) ** 2 < 1
        shade = r.uniform(-0.5, 0.5) + 0.03 * (xx - size / 2) * r.normal()
        images.append(1.3 * mask + shade + r.normal(0, 0.55, (size, size)))
        masks.append(mask)
    x = torch.tensor(np.array(images), dtype=torch.float32)[:, None]
    return (x - x.mean()) / x.std(), torch.tensor(np.array(masks), dtype=torch.float32)[:, None]


class Segmenter(nn.Module):
    def __init__(self):
        super().__init__()
        self.down1 = nn.Conv2d(1, 16, 3, padding=1)
        self.norm1 = nn.BatchNorm2d(16)
        self.down2 = nn.Conv2d(16, 32, 3, padding=1, stride=2)
        self.norm2 = nn.BatchNorm2d(32)
        self.middle = nn.Conv2d(32, 32, 3, padding=1)
        self.drop = nn.Dropout2d(0.4)
        self.up = nn.ConvTranspose2d(32, 16, 2, stride=2)
        self.out = nn.Conv2d(32, 1, 3, padding=1)

    def forward(self, x):
        a = self.norm1(self.down1(x)).relu()
        b = self.norm2(self.down2(a)).relu()
        b = self.middle(b).relu()
        return self.out(self.drop(torch.cat([a, self.up(b).relu()], 1)))


def dice(logits, mask):
    guess = (logits > 0).float()
    return (2 * (guess * mask).sum() / (guess.sum() + mask.sum()).clamp(min=1)).item()


def validate(model, loader):
    if healthy:
        model.eval()
    with torch.no_grad():
        scores = [
            (nn.functional.binary_cross_entropy_with_logits(model(x), y).item(), dice(model(x), y))
            for x, y in loader
        ]
    model.train()
    return np.mean(scores, 0)


x, y = cells(1000, seed)
train = DataLoader(TensorDataset(x[:800], y[:800]), batch_size=16, shuffle=True, drop_last=True)
val = DataLoader(TensorDataset(x[800:], y[800:]), batch_size=8)
model = Segmenter()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-2)
for epoch in range(7):
    for xb, yb in train:
        loss = nn.functional.binary_cross_entropy_with_logits(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    val_loss, score = validate(model, val)
    print(f"epoch {epoch} loss {loss.item():.3f} validation loss {val_loss:.3f} dice {score:.3f}")
