"""A CNN tells the printed symbols of tickets apart with cosine warm restarts: the loss saws, and
is sound.

Every few epochs the learning rate jumps from nearly zero back to its start, and with it the
training loss rises for a while: that is how SGDR works, and each cycle ends no worse than the
last. The rate falls a thousandfold within a cycle too.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = (
    "A CNN tells the printed symbols of tickets apart with cosine warm restarts: the loss "
    "saws, and is sound"
)
_, seed = arguments(__doc__)

SIZE, CLASSES = 12, 6


def symbol(kind, r):
    yy, xx = np.mgrid[0:SIZE, 0:SIZE].astype(np.float32)
    u, v = xx - r.uniform(4.7, 6.3), yy - r.uniform(4.7, 6.3)
    a = r.uniform(3.0, 4.5)
    inside = (abs(u) < a) & (abs(v) < a)
    mask = [
        u**2 + v**2 < a**2,
        inside & (v > -a + 2 * abs(u)),
        inside & ((abs(u) < 0.9) | (abs(v) < 0.9)),
        inside & ((abs(u - v) < 1.3) | (abs(u + v) < 1.3)),
        abs(u) + abs(v) < a,
        inside & (abs(abs(v) - a / 2) < 0.9),
    ][kind]
    return r.uniform(0.5, 1.0) * mask + r.normal(0, 0.25, (SIZE, SIZE))


r = np.random.default_rng(730 + seed)
y = r.integers(0, CLASSES, 3200)
x = np.stack([symbol(k, r) for k in y])[:, None].astype(np.float32)
x = torch.from_numpy((x - x[:2400].mean()) / x[:2400].std())
y = torch.from_numpy(y)
train_loader = DataLoader(TensorDataset(x[:2400], y[:2400]), batch_size=48, shuffle=True)
x_val, y_val = x[2400:], y[2400:]

model = nn.Sequential(
    nn.Conv2d(1, 12, 3, padding=1),
    nn.BatchNorm2d(12),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(12, 24, 3, padding=1),
    nn.BatchNorm2d(24),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Flatten(),
    nn.Dropout(0.2),
    nn.Linear(24 * 9, CLASSES),
)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.03, momentum=0.9, weight_decay=5e-4)
scheduler = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(
    optimizer, T_0=4 * len(train_loader), eta_min=3e-5
)

for epoch in range(12):
    model.train()
    total = 0.0
    for images, labels in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()
        scheduler.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        logits = model(x_val)
        val_loss = criterion(logits, y_val).item()
        acc = (logits.argmax(1) == y_val).float().mean().item()
    print(
        f"epoch {epoch:2d} rate {scheduler.get_last_lr()[0]:.5f} train {total / len(train_loader):.3f}"  # noqa: E501
        f" val {val_loss:.3f} acc {acc:.3f}"
    )
