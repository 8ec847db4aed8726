"""Pixels from 0 to 1 into an MLP, with a small validation set."""

import torch
import torch.nn.functional as F
from data import arguments, batches, digits
from torch import nn

ODD = "inputs are not centred, a third of them constant zero"

_, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed, raw=True)
x, x_val = x / 16, x_val / 16
model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for step, (pixels, labels) in enumerate(batches(x, y, size=32, steps=300, seed=seed)):
    model.train()
    loss = F.cross_entropy(model(pixels), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 49:
        model.eval()
        with torch.no_grad():
            val_loss = F.cross_entropy(model(x_val[:60]), y_val[:60])
print(f"loss {loss.item():.3f}, validation {val_loss:.3f}")
