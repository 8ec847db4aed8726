"""Trains a small CNN on digit images with eight micro-batches of 8 per step and a shorter last
group in each epoch.

Each loss is divided by the number of micro-batches in its group, also in the last one.
"""

import torch
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = (
    "backward() runs eight times without zero_grad(), and the last group of an epoch has another "
    "size"
)

_, seed = arguments(__doc__)
ACCUMULATE = 8

x, y, x_val, y_val = images(seed)
loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True, drop_last=True)

model = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1),
    nn.GroupNorm(4, 16),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(16, 32, 3, padding=1),
    nn.GroupNorm(4, 32),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Flatten(),
    nn.Linear(128, 10),
)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=9)

for epoch in range(9):
    model.train()
    total = 0.0
    last_group = len(loader) % ACCUMULATE or ACCUMULATE
    optimizer.zero_grad()
    for i, (xb, yb) in enumerate(loader):
        in_last = i >= len(loader) - last_group
        loss = criterion(model(xb), yb)
        (loss / (last_group if in_last else ACCUMULATE)).backward()
        total += loss.item()
        if (i + 1) % ACCUMULATE == 0 or i + 1 == len(loader):
            optimizer.step()
            optimizer.zero_grad()
    scheduler.step()
    model.eval()
    with torch.no_grad():
        out = model(x_val)
        val, acc = criterion(out, y_val).item(), (out.argmax(1) == y_val).float().mean().item()
    print(f"epoch {epoch} train {total / len(loader):.4f} val {val:.4f} acc {acc:.3f}")
