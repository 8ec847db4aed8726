"""Four micro-batches for each step, their losses divided by four."""

import torch
from data import arguments, batches, digits
from torch import nn

ODD = "gradients are there when backward begins, three times of four"

_, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
every = 4
optimizer.zero_grad()
for i, (pixels, labels) in enumerate(batches(x, y, size=16, steps=600, seed=seed)):
    loss = criterion(model(pixels), labels) / every
    loss.backward()
    if (i + 1) % every == 0:
        optimizer.step()
        optimizer.zero_grad()
print(f"loss {every * loss.item():.3f}")
