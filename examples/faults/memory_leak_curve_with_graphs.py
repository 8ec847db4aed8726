"""Trains a CNN on digit images and keeps the validation loss of each third step as a tensor with
its whole graph.

The losses are appended to a list for a plot, computed without no_grad(), so every entry holds the
activations of the validation images in memory: the process grows by some megabytes each time,
without end. The twin computes them under no_grad(). The place is the loop or the loss.
"""

import os

import torch
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "memory_leak"
ACCEPT = ()
PLACE = ("loop", "loss*")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)

x, y, x_val, y_val = images(seed)
loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True, drop_last=True)
x_watch, y_watch = x_val[:200], y_val[:200]

model = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1),
    nn.ReLU(),
    nn.Conv2d(16, 16, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(16, 32, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Flatten(),
    nn.Linear(128, 10),
)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
criterion = nn.CrossEntropyLoss()
train_curve, val_curve = [], []


def watch():
    model.eval()
    if healthy:
        with torch.no_grad():
            val_curve.append(criterion(model(x_watch), y_watch))
    else:
        val_curve.append(criterion(model(x_watch), y_watch))
    model.train()


def resident_megabytes():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


model.train()
step = 0
for epoch in range(12):
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        optimizer.step()
        train_curve.append(loss.item())
        if step % 3 == 0:
            watch()
        step += 1
    recent = sum(train_curve[-len(loader) :]) / len(loader)
    print(
        f"epoch {epoch}: train {recent:.4f} "
        f"val {val_curve[-1]:.4f} memory {resident_megabytes():.0f} MB"
    )
