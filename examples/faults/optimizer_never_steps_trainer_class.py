"""A convolutional classifier of drawn shapes in a Trainer class that never calls the optimizer's
step.

The user calls scheduler.step() after every batch and takes it for the step of the optimizer,
which is missing: the weights stay as they were initialised. The place is the loop (or the
optimizer).
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "optimizer_never_steps"
ACCEPT = ()
PLACE = ("loop", "optimizer")
SILENT = False
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


def shapes(n, seed, size=16):
    r = np.random.default_rng(seed)
    label = r.integers(0, 4, n)
    yy, xx = np.mgrid[:size, :size]
    pictures = []
    for kind in label:
        cx, cy = r.uniform(5, 10, 2)
        radius = r.uniform(2.5, 5)
        dx, dy = xx - cx, yy - cy
        if kind == 0:
            mask = dx**2 + dy**2 < radius**2
        elif kind == 1:
            mask = (abs(dx) < radius * 0.85) & (abs(dy) < radius * 0.85)
        elif kind == 2:
            mask = (abs(dx) < 1.2) & (abs(dy) < radius) | (abs(dy) < 1.2) & (abs(dx) < radius)
        else:
            mask = abs(dx) + abs(dy) < radius
        pictures.append(mask * r.uniform(0.6, 1.4) + r.normal(0, 0.25, (size, size)))
    x = torch.tensor(np.array(pictures), dtype=torch.float32)[:, None]
    return (x - x.mean()) / x.std(), torch.tensor(label)


class Trainer:
    def __init__(self, model, train, val, epochs, lr):
        self.model, self.train_loader, self.val_loader, self.epochs = model, train, val, epochs
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9, nesterov=True)
        self.scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(
            self.optimizer, epochs * len(train)
        )
        self.loss_fn = nn.CrossEntropyLoss()

    def training_step(self, x, y):
        self.optimizer.zero_grad()
        loss = self.loss_fn(self.model(x), y)
        loss.backward()
        if healthy:
            self.optimizer.step()
        self.scheduler.step()
        return loss.item()

    @torch.no_grad()
    def evaluate(self):
        self.model.eval()
        right = sum((self.model(x).argmax(1) == y).sum().item() for x, y in self.val_loader)
        return right / len(self.val_loader.dataset)

    def fit(self):
        for epoch in range(self.epochs):
            self.model.train()
            losses = [self.training_step(x, y) for x, y in self.train_loader]
            print(
                f"epoch {epoch} loss {np.mean(losses):.3f} validation accuracy {self.evaluate():.3f}"  # noqa: E501
            )


x, y = shapes(3000, seed)
train = DataLoader(TensorDataset(x[:2400], y[:2400]), batch_size=48, shuffle=True)
val = DataLoader(TensorDataset(x[2400:], y[2400:]), batch_size=200)
model = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(16, 32, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Flatten(),
    nn.Linear(512, 64),
    nn.ReLU(),
    nn.Linear(64, 4),
)
Trainer(model, train, val, epochs=8, lr=0.02).fit()
