"""A learning rate of 5 with SGD, copied from a recipe for a loss of another scale.

The loss jumps far above its start, then stays at chance. The place is the optimizer.
"""

import torch
from data import arguments, batches, images
from torch import nn

KIND = "learning_rate_too_high"
ACCEPT = ()
PLACE = ("optimizer",)
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = images(seed)
model = nn.Sequential(
    nn.Conv2d(1, 8, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Flatten(),
    nn.Linear(128, 32),
    nn.ReLU(),
    nn.Linear(32, 10),
)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1 if healthy else 5.0)
for pixels, labels in batches(x, y, size=64, steps=200, seed=seed):
    optimizer.zero_grad()
    loss = criterion(model(pixels), labels)
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}, accuracy {(model(x_val).argmax(1) == y_val).float().mean():.3f}")
