"""Weights for 30 inputs, but the inputs come from 0 to 4,000: all tanh units are at their ends.

Their slope is 0 and the first layer learns nothing. The place is the first tanh.
"""

import torch
from data import arguments, batches, cancer
from torch import nn

KIND = "saturated_activation"
ACCEPT = ("input_not_normalized",)
PLACE = ("1", "0", "input*")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = cancer(seed, raw=not healthy)
model = nn.Sequential(nn.Linear(30, 32), nn.Tanh(), nn.Linear(32, 2))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
for features, labels in batches(x, y, size=32, steps=250, seed=seed):
    optimizer.zero_grad()
    loss = criterion(model(features), labels)
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}, accuracy {(model(x_val).argmax(1) == y_val).float().mean():.3f}")
