"""Gradient accumulation over 32 batches in epochs of 22: the counter begins anew with each epoch.

`if (i + 1) % accumulate == 0` is never true, so that the optimizer never steps; the loss is what it
was, a little different for each batch. The twin accumulates two. The place is the loop.
"""

import torch
from data import arguments, digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "optimizer_never_steps"
ACCEPT = ("gradients_not_cleared",)
PLACE = ("loop", "optimizer", "loss*")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)
loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)
model = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 10))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
accumulate = 2 if healthy else 32

for epoch in range(12):
    model.train()
    total = 0.0
    for i, (pixels, labels) in enumerate(loader):
        loss = criterion(model(pixels), labels) / accumulate
        loss.backward()
        total += loss.item() * accumulate
        if (i + 1) % accumulate == 0:
            optimizer.step()
            optimizer.zero_grad()
    model.eval()
    with torch.no_grad():
        accuracy = (model(x_val).argmax(1) == y_val).float().mean().item()
print(f"loss {total / len(loader):.3f} | validation accuracy {accuracy:.3f}")
