"""nn.NLLLoss is given raw scores; it expects log-probabilities.

The loss goes below zero and on towards minus infinity. The place is the loss. Exact: the rows that
it is given are no log-probabilities.
"""

import torch
from data import arguments, batches, wine
from torch import nn

KIND = "missing_softmax"
ACCEPT = ()
PLACE = ("loss*", "4")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = wine(seed)
layers = [nn.Linear(13, 24), nn.Tanh(), nn.Linear(24, 24), nn.Tanh(), nn.Linear(24, 3)]
if healthy:
    layers.append(nn.LogSoftmax(dim=1))
model = nn.Sequential(*layers)
criterion = nn.NLLLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for features, labels in batches(x, y, size=24, steps=200, seed=seed):
    optimizer.zero_grad()
    loss = criterion(model(features), labels)
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}, accuracy {(model(x_val).argmax(1) == y_val).float().mean():.3f}")
