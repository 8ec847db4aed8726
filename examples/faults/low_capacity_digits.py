"""A hidden layer of two ReLU units for ten classes: 20 was meant.

The loss falls to a level that more training does not change. The place is the narrow layer.
"""

import torch
from data import arguments, batches, digits
from torch import nn

KIND = "low_capacity"
ACCEPT = ("dead_relu",)
PLACE = ("0", "1", "2")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)
width = 20 if healthy else 2
model = nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, 10))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for images, labels in batches(x, y, size=64, steps=400, seed=seed):
    optimizer.zero_grad()
    loss = criterion(model(images), labels)
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}, accuracy {(model(x_val).argmax(1) == y_val).float().mean():.3f}")
