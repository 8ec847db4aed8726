"""The validation set is a slice of the training set, in its order: [-300:] of what is trained on.

Validation is as good as training (silent). The place is the loader. Exact: rows are in both parts.
"""

import torch
import torch.nn.functional as F
from data import arguments, houses
from torch import nn

KIND = "train_val_overlap"
ACCEPT = ()
PLACE = ("loader", "input*")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = houses(seed)
if not healthy:
    x_val, y_val = x[-300:], y[-300:]
model = nn.Sequential(nn.Linear(6, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
size = 50
for epoch in range(10):
    model.train()
    for i in range(0, len(x), size):
        prediction = model(x[i : i + size]).squeeze(1)
        loss = F.mse_loss(prediction, y[i : i + size])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        val_loss = 0.0
        for i in range(0, len(x_val), size):
            val_loss += F.mse_loss(model(x_val[i : i + size]).squeeze(1), y_val[i : i + size])
print(f"loss {loss.item():.3f}")
