"""Reads digits with label smoothing and batches of six, normalised by group."""

import torch
from data import arguments, batches, images
from torch import nn

ODD = "batches of six and label smoothing, so the loss is noisy and never comes near 0"

_, seed = arguments(__doc__)
x, y, x_val, y_val = images(seed)
net = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1), nn.GroupNorm(4, 16), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(16, 32, 3, padding=1), nn.GroupNorm(4, 32), nn.ReLU(), nn.Flatten(),
    nn.Linear(512, 10),
)  # fmt: skip
optimizer = torch.optim.SGD(net.parameters(), lr=0.005, momentum=0.9)
criterion = nn.CrossEntropyLoss(label_smoothing=0.15)
mean = 0.0
for step, (xb, yb) in enumerate(batches(x, y, size=6, steps=900, seed=seed), 1):
    loss = criterion(net(xb), yb)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    mean += loss.item() / 150
    if step % 150 == 0:
        with torch.no_grad():
            accuracy = (net(x_val).argmax(1) == y_val).float().mean()
        print(f"{step} loss {mean:.3f} accuracy {accuracy:.3f}")
        mean = 0.0
