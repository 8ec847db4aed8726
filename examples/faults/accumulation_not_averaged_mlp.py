"""Digits in micro-batches of 8, eight of them per step, without dividing the loss by eight.

The gradient of each step is the sum of eight means, eight times what the learning rate was made
for: training is rough and ends worse. The place is the loss.
"""

import torch
from data import arguments, digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "accumulation_not_averaged"
ACCEPT = ()
PLACE = ("loop", "loss*")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
ACCUMULATE = 8
x, y, x_val, y_val = digits(seed)
loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True, drop_last=True)
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.025, momentum=0.9)
for epoch in range(8):
    optimizer.zero_grad()
    for i, (xb, yb) in enumerate(loader):
        loss = criterion(model(xb), yb)
        if healthy:
            (loss / ACCUMULATE).backward()
        else:
            loss.backward()
        if (i + 1) % ACCUMULATE == 0:
            optimizer.step()
            optimizer.zero_grad()
    with torch.no_grad():
        out = model(x_val)
        acc = (out.argmax(1) == y_val).float().mean().item()
    print(f"epoch {epoch} val loss {criterion(out, y_val).item():.3f} val acc {acc:.3f}")
