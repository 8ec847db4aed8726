"""The validation part is scaled by its minimum and maximum, the training part by mean and
deviation.

A second scaler was written for it. Training goes well (silent). The place is the loader of the
validation data.
"""

import torch
import torch.nn.functional as F
from data import arguments, batches, houses, standardise
from torch import nn

KIND = "train_val_mismatch"
ACCEPT = ()
PLACE = ("loader", "input*")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = houses(seed, raw=True)
scaled, scaled_val = standardise(x, x_val)
if not healthy:
    low, high = x_val.min(0).values, x_val.max(0).values
    scaled_val = (x_val - low) / (high - low)

model = nn.Sequential(nn.Linear(6, 48), nn.SiLU(), nn.Linear(48, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
for step, (features, price) in enumerate(batches(scaled, y, size=64, steps=240, seed=seed)):
    model.train()
    loss = F.mse_loss(model(features).view(-1), price)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 30 == 29:
        model.eval()
        with torch.inference_mode():
            error = F.mse_loss(model(scaled_val).view(-1), y_val)
print(f"loss {loss.item():.3f}, validation {error:.3f}")
