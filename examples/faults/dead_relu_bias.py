"""Biases of all layers are set to -4, a trick meant for the output layer of a detector.

Hidden units are negative for every sample and get no gradient. The place is the hidden ReLU layers.
"""

import torch
from data import arguments, batches, digits
from torch import nn

KIND = "dead_relu"
ACCEPT = ("poor_weight_init", "dying_relu")
PLACE = ("1", "3", "0", "2")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)
model = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 10))
for layer in model:
    if isinstance(layer, nn.Linear):
        nn.init.constant_(layer.bias, 0.0 if healthy else -4.0)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for images, labels in batches(x, y, size=64, steps=320, seed=seed):
    optimizer.zero_grad()
    loss = criterion(model(images), labels)
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}, accuracy {(model(x_val).argmax(1) == y_val).float().mean():.3f}")
