"""A small ResNet that tells four shapes of galaxies is held down by weight_decay=5e-1 in SGD, a
thousand times the usual 5e-4.

The exponent was mistyped when the settings were written anew. The decay pulls convolutions,
batch-norm scales and head towards zero faster than the loss can push, so the loss stays near
log 4. The place is the optimizer.
"""

import math

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

KIND = "over_regularized"
ACCEPT = ("bad_optimizer_settings",)
PLACE = ("optimizer",)
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

EPOCHS = 7
SIZE = 16


def draw_galaxy(kind, rng):
    """0 round, 1 edge-on, 2 ring, 3 two merging cores."""
    v, u = np.mgrid[-1 : 1 : SIZE * 1j, -1 : 1 : SIZE * 1j]
    u, v = u - rng.uniform(-0.2, 0.2), v - rng.uniform(-0.2, 0.2)
    turn = rng.uniform(0, math.pi)
    a, b = u * math.cos(turn) + v * math.sin(turn), v * math.cos(turn) - u * math.sin(turn)
    r = np.hypot(a, b)
    if kind == 0:
        light = np.exp(-((r / rng.uniform(0.3, 0.45)) ** 2))
    elif kind == 1:
        light = np.exp(-((a / 0.7) ** 2) - (b / 0.15) ** 2)
    elif kind == 2:
        light = np.exp(-(((r - rng.uniform(0.5, 0.6)) / 0.15) ** 2))
    else:
        apart = rng.uniform(0.3, 0.45)
        light = np.exp(-(((a - apart) ** 2 + b**2) / 0.04))
        light = light + 0.8 * np.exp(-(((a + apart) ** 2 + b**2) / 0.04))
    return light * rng.uniform(0.7, 1.2) + rng.normal(0, 0.15, light.shape)


class BasicBlock(nn.Module):
    def __init__(self, inside, outside, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outside)
        self.conv2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outside)
        self.shortcut = nn.Conv2d(inside, outside, 1, stride, bias=False)

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(out)) + self.shortcut(x))


class GalaxyResNet(nn.Module):
    def __init__(self, n_classes=4):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, 8, 3, 1, 1), nn.ReLU())
        self.layers = nn.Sequential(BasicBlock(8, 12, 2), BasicBlock(12, 16, 2))
        self.fc = nn.Linear(16, n_classes)

    def forward(self, x):
        return self.fc(self.layers(self.stem(x)).mean((2, 3)))


def accuracy(model, loader):
    model.eval()
    with torch.no_grad():
        right = sum((model(x).argmax(1) == y).sum().item() for x, y in loader)
    return right / len(loader.dataset)


rng = np.random.default_rng(seed)
kinds = rng.integers(0, 4, 1600)
pictures = np.stack([draw_galaxy(kind, rng) for kind in kinds])
x = torch.tensor(pictures, dtype=torch.float32).unsqueeze(1)
x = (x - x.mean()) / x.std()
train_set, val_set = random_split(TensorDataset(x, torch.tensor(kinds)), [1280, 320])
train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
val_loader = DataLoader(val_set, batch_size=160)

model = GalaxyResNet()
optimizer = torch.optim.SGD(
    model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4 if healthy else 5e-1
)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(
    optimizer, T_max=EPOCHS * len(train_loader), eta_min=1e-3
)

for epoch in range(1, EPOCHS + 1):
    model.train()
    total = 0.0
    for images, labels in train_loader:
        loss = F.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        total += loss.item()
    print(
        f"[{epoch}/{EPOCHS}] train loss {total / len(train_loader):.4f}  "
        f"train acc {accuracy(model, train_loader):.3f}  val acc {accuracy(model, val_loader):.3f}"
    )
