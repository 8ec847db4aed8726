"""A regression that ends in a ReLU; the targets are standardised, so that half of them are
negative.

The loss falls half of the way (silent). The place is the last layer. Exact: targets lie where the
output cannot go.
"""

import torch
from data import arguments, batches, diabetes
from torch import nn

KIND = "output_activation_range"
ACCEPT = ()
PLACE = ("3", "loss*", "2")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = diabetes(seed)
layers = [nn.Linear(10, 24), nn.ReLU(), nn.Linear(24, 1)]
if not healthy:
    layers.append(nn.ReLU())
model = nn.Sequential(*layers)
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for features, target in batches(x, y[:, None], size=32, steps=200, seed=seed):
    optimizer.zero_grad()
    loss = criterion(model(features), target)
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}")
