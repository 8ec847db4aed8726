"""The three lines in the wrong order: forward, zero_grad(), step(), backward().

step() always comes after the gradients were cleared and before new ones are there. The place is
the loop. Exact.
"""

import torch
import torch.nn.functional as F
from data import arguments, batches, waves
from torch import nn

KIND = "step_without_gradient"
ACCEPT = ()
PLACE = ("loop",)
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
x, y = waves(seed)
model = nn.Sequential(
    nn.Conv1d(1, 12, 5), nn.ReLU(), nn.AdaptiveAvgPool1d(4), nn.Flatten(), nn.Linear(48, 3)
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for series, shape in batches(x, y, size=40, steps=320, seed=seed):
    loss = F.cross_entropy(model(series.transpose(1, 2)), shape)
    optimizer.zero_grad()
    if healthy:
        loss.backward()
        optimizer.step()
    else:
        optimizer.step()
        loss.backward()
print(f"loss {loss.item():.3f}")
