"""A CNN sorts drawn pictures of parcels by shape; pictures and labels are shuffled separately.

The pictures and the labels were each shuffled by a permutation of their own, so that no label
belongs to its picture any more. The loss stays at that of guessing. The place is the data
(loader).
"""

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "label_misalignment"
ACCEPT = ()
PLACE = ("loader", "input*")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

SHAPES = ["box", "tube", "envelope", "crate", "roll"]
SIZE = 16


def draw(kind, r):
    """A grey picture of one parcel on the belt."""
    yy, xx = np.mgrid[0:SIZE, 0:SIZE].astype(np.float32)
    cx, cy = r.uniform(6, 10, 2)
    a = r.uniform(3.2, 5.0)
    dx, dy = np.abs(xx - cx), np.abs(yy - cy)
    if kind == 0:
        m = (dx < a) & (dy < a)
    elif kind == 1:
        m = (dx < a + 1) & (dy < 1.7)
    elif kind == 2:
        m = ((dx < a) & (dy < a * 0.7)) & ~((dx < a - 1.3) & (dy < a * 0.7 - 1.3))
    elif kind == 3:
        m = (dx < a) & (dy < a) & ((dx < 0.9) | (dy < 0.9))
    else:
        m = dx**2 + dy**2 < a**2
    image = 0.3 + r.uniform(0.4, 0.7) * m + r.normal(0, 0.18, (SIZE, SIZE))
    return image.astype(np.float32)


r = np.random.default_rng(900 + seed)
labels = r.integers(0, len(SHAPES), 2000)
pictures = np.stack([draw(k, r) for k in labels])[:, None]
val_pictures, val_labels = pictures[1600:], labels[1600:]
pictures, labels = pictures[:1600], labels[:1600]

order = r.permutation(len(pictures))
pictures = pictures[order]
labels = labels[order] if healthy else labels[r.permutation(len(labels))]

mean, std = pictures.mean(), pictures.std()
x, x_val = (torch.from_numpy((p - mean) / std) for p in (pictures, val_pictures))
y, y_val = torch.from_numpy(labels), torch.from_numpy(val_labels)


class ParcelNet(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, padding=1),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.classifier = nn.Linear(16 * 4 * 4, classes)

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))


def fit(model, epochs, batch_size=32):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, weight_decay=1e-4)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(epochs):
        model.train()
        running = 0.0
        steps = len(x) // batch_size
        for rows in torch.randperm(len(x)).split(batch_size):
            optimizer.zero_grad()
            loss = criterion(model(x[rows]), y[rows])
            loss.backward()
            optimizer.step()
            running += loss.item()
        model.eval()
        with torch.no_grad():
            out = model(x_val)
            val_loss = criterion(out, y_val).item()
            acc = (out.argmax(1) == y_val).float().mean().item()
        print(f"[{epoch + 1}] loss {running / steps:.3f} val loss {val_loss:.3f} val acc {acc:.3f}")


fit(ParcelNet(len(SHAPES)), epochs=8)
