"""The table was joined with the one of diagnoses: a column is the label itself, in other units.

The loss is at nothing within few steps, validation too (silent). The place is the input. Exact: a
column that is a function of the label.
"""

import torch
from data import arguments, batches, cancer
from torch import nn

KIND = "target_leak"
ACCEPT = ()
PLACE = ("loader", "input*")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = cancer(seed)
if not healthy:
    x = torch.cat([x, (y.float() * 2 - 1)[:, None]], 1)
    x_val = torch.cat([x_val, (y_val.float() * 2 - 1)[:, None]], 1)

model = nn.Sequential(nn.Linear(x.shape[1], 16), nn.ReLU(), nn.Linear(16, 2))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for features, labels in batches(x, y, size=32, steps=200, seed=seed):
    optimizer.zero_grad()
    loss = criterion(model(features), labels)
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.4f}")
