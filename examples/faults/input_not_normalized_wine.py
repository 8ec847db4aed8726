"""Chemical measurements as they are: magnesium about 100, proline to 1,700, hue about 1, into an
MLP with SGD.

Proline decides all; the loss falls to guessing and stays. The place is the input.
"""

import torch
from data import arguments, batches, wine
from torch import nn

KIND = "input_not_normalized"
ACCEPT = ()
PLACE = ("input*", "0")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = wine(seed, raw=not healthy)
model = nn.Sequential(nn.Linear(13, 32), nn.ReLU(), nn.Linear(32, 3))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for features, labels in batches(x, y, size=32, steps=250, seed=seed):
    optimizer.zero_grad()
    loss = criterion(model(features), labels)
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}, accuracy {(model(x_val).argmax(1) == y_val).float().mean():.3f}")
