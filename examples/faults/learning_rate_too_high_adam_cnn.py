"""Digit images, a CNN and Adam at a learning rate of 0.3.

The first steps throw the weights about, the loss leaps far above where it began, and then it stays
around the logarithm of ten. The place is the optimizer.
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
LR = 0.003 if healthy else 0.3
x, y, x_val, y_val = images(seed)
model = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1),
    nn.ReLU(),
    nn.Conv2d(16, 16, 3, stride=2, padding=1),
    nn.ReLU(),
    nn.Flatten(),
    nn.Linear(256, 10),
)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=LR)
for img, lab in batches(x, y, size=64, steps=150, seed=seed):
    optimizer.zero_grad()
    loss = criterion(model(img), lab)
    loss.backward()
    optimizer.step()
with torch.no_grad():
    acc = (model(x_val).argmax(1) == y_val).float().mean().item()
print(f"loss {loss.item():.3f}, accuracy {acc:.3f}")
