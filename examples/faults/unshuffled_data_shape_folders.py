"""A small CNN learns four kinds of drawn shapes, and the loader reads them folder by folder
without shuffling.

The images are listed as they lie on disk, one folder per class, and the user left `shuffle` at
its default: each batch holds one class only and the network forgets the others. The place is the
loader.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "unshuffled_data"
ACCEPT = ()
PLACE = ("loader",)
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


def draw(kind, r):
    yy, xx = np.mgrid[0:16, 0:16].astype(np.float32)
    cy, cx, s = r.uniform(5.5, 9.5), r.uniform(5.5, 9.5), r.uniform(3, 5)
    dy, dx = yy - cy, xx - cx
    if kind == 0:
        mask = np.hypot(dy, dx) < s
    elif kind == 1:
        mask = np.maximum(abs(dy), abs(dx)) < s * 0.88
    elif kind == 2:
        mask = (abs(dx) < (dy + s) / 2) & (dy < s)
    else:
        mask = (np.minimum(abs(dy), abs(dx)) < 1.4) & (np.maximum(abs(dy), abs(dx)) < s)
    return mask * r.uniform(0.6, 1.0) + r.normal(0, 0.22, (16, 16))


def folders(per_class, r):
    x = np.stack([draw(k, r) for k in range(4) for _ in range(per_class)])
    y = np.repeat(np.arange(4), per_class)
    x = torch.tensor(x, dtype=torch.float32).unsqueeze(1)
    return TensorDataset((x - 0.2) / 0.4, torch.tensor(y))


class Trainer:
    def __init__(self, model, train, val):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
        self.criterion = nn.CrossEntropyLoss()
        self.train_loader = DataLoader(train, batch_size=40, shuffle=healthy)
        self.val_loader = DataLoader(val, batch_size=200)

    def epoch(self):
        self.model.train()
        total = 0.0
        for x, y in self.train_loader:
            self.optimizer.zero_grad()
            loss = self.criterion(self.model(x), y)
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        return total / len(self.train_loader)

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        right = n = 0
        for x, y in self.val_loader:
            right += (self.model(x).argmax(1) == y).sum().item()
            n += len(y)
        return right / n

    def fit(self, epochs):
        for e in range(epochs):
            loss = self.epoch()
            print(f"epoch {e}: train loss {loss:.3f}, validation accuracy {self.validate():.3f}")


r = np.random.default_rng(seed)
net = nn.Sequential(
    nn.Conv2d(1, 12, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(12, 24, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
    nn.Flatten(), nn.Linear(24 * 16, 48), nn.ReLU(), nn.Linear(48, 4),
)  # fmt: skip
Trainer(net, folders(800, r), folders(150, r)).fit(8)
