"""A network with 4,000 weights for 331 patients, trained far past its best.

The training error goes to nothing, the validation error doubles (silent). The place is the loop;
the twin stops early.
"""

import torch
import torch.nn.functional as F
from data import arguments, diabetes
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "overfit"
ACCEPT = ("overfitting",)
PLACE = ("loss*", "loop")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = diabetes(seed)
model = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
best, since_best = float("inf"), 0
for epoch in range(50):
    model.train()
    for features, target in DataLoader(TensorDataset(x, y), batch_size=33, shuffle=True):
        loss = F.mse_loss(model(features).squeeze(1), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        error = F.mse_loss(model(x_val).squeeze(1), y_val).item()
    best, since_best = (error, 0) if error < best else (best, since_best + 1)
    if healthy and since_best == 2:
        break
print(f"loss {loss.item():.3f}, validation {error:.3f}, best {best:.3f}")
