"""An evaluate() with @torch.no_grad() that forgets model.eval(); the model has dropout.

The place is the loop. Training is not touched; the error that is reported is too large (silent).
Exact: the model is in training mode in an evaluation.
"""

import torch
import torch.nn.functional as F
from data import arguments, batches, houses
from torch import nn

KIND = "train_mode_in_validation"
ACCEPT = ()
PLACE = ("loop",)
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = houses(seed)
model = nn.Sequential(
    nn.Linear(6, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1)
)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)


@torch.no_grad()
def evaluate():
    if healthy:
        model.eval()
    error = F.mse_loss(model(x_val)[:, 0], y_val)
    model.train()
    return error.item()


for step, (features, price) in enumerate(batches(x, y, size=64, steps=240, seed=seed)):
    loss = F.mse_loss(model(features)[:, 0], price)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 40 == 39:
        error = evaluate()
print(f"loss {loss.item():.3f}, validation {error:.3f}")
