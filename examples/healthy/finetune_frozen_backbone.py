"""A backbone trained on digits 0 to 4, then frozen; a new head learns 5 to 9.

Batch norm stays in evaluation mode in the second part, as is usual.
"""

import torch
import torch.nn.functional as F
from data import arguments, batches, images
from torch import nn

ODD = "frozen parameters, modules in evaluation mode in training, two trainings in one script"

_, seed = arguments(__doc__)
x, y, x_val, y_val = images(seed)
low = y < 5

backbone = nn.Sequential(
    nn.Conv2d(1, 12, 3, padding=1),
    nn.BatchNorm2d(12),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Flatten(),
    nn.Linear(192, 48),
    nn.ReLU(),
)
model = nn.Sequential(backbone, nn.Linear(48, 5))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for pixels, labels in batches(x[low], y[low], size=64, steps=120, seed=seed):
    loss = F.cross_entropy(model(pixels), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

model[1] = nn.Linear(48, 5)
for parameter in backbone.parameters():
    parameter.requires_grad = False
optimizer = torch.optim.Adam(model[1].parameters(), lr=3e-3)
model.train()
backbone.eval()
for pixels, labels in batches(x[~low], y[~low] - 5, size=64, steps=200, seed=seed):
    loss = F.cross_entropy(model(pixels), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}")
