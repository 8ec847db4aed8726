"""A column has missing values, read as NaN, and nobody filled them.

The first batch that has one makes the loss NaN, and all weights with it. The place is the input.
Exact.
"""

import torch
from data import arguments, batches, cancer
from torch import nn

KIND = "nan_input"
ACCEPT = ("non_finite_input",)
PLACE = ("input*", "0", "")
SILENT = False
EXACT = True
EARLY = False

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = cancer(seed)
missing = torch.rand(len(x)) < 0.01
missing[3] = True
x[missing, 14] = float("nan")
if healthy:
    x = torch.nan_to_num(x, nan=0.0)  # the mean of a standardised column

model = nn.Sequential(nn.Linear(30, 16), nn.ReLU(), nn.Linear(16, 2))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for features, labels in batches(x, y, size=16, steps=150, seed=seed):
    optimizer.zero_grad()
    loss = criterion(model(features), labels)
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}")
