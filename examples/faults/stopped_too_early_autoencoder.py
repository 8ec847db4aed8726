"""An auto-encoder stops after 60 steps, because the loop counts batches where epochs were meant.

The place is the loop. The loss falls to the last step (silent).
"""

import torch
import torch.nn.functional as F
from data import arguments, batches, digits
from torch import nn

KIND = "stopped_too_early"
ACCEPT = ()
PLACE = ("loop",)
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
x, _, x_val, _ = digits(seed)
model = nn.Sequential(
    nn.Linear(64, 48), nn.GELU(), nn.Linear(48, 12), nn.Linear(12, 48), nn.GELU(), nn.Linear(48, 64)
)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for (pixels,) in batches(x, size=64, steps=700 if healthy else 60, seed=seed):
    loss = F.mse_loss(model(pixels), pixels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}")
