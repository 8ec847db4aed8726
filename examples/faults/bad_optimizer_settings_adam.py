"""Adam(eps=1.0), from a recipe for another network: steps are hundreds of times smaller than lr.

The loss falls slowly (silent). The place is the optimizer.
"""

import torch
from data import arguments, batches, digits
from torch import nn

KIND = "bad_optimizer_settings"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("optimizer",)
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, eps=1e-8 if healthy else 1.0)
for images, labels in batches(x, y, size=64, steps=320, seed=seed):
    optimizer.zero_grad()
    loss = criterion(model(images), labels)
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}, accuracy {(model(x_val).argmax(1) == y_val).float().mean():.3f}")
