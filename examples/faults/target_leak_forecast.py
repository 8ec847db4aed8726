"""A forecast of the next value of a series; the window of inputs ends one step too late and has it
already.

The loss falls far below the noise of the series (silent). The place is the input. Exact: the last
column is the target.
"""

import torch
import torch.nn.functional as F
from data import arguments, batches
from torch import nn

KIND = "target_leak"
ACCEPT = ("future_leak",)
PLACE = ("loader", "input*")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
t = torch.arange(1600.0)
series = (t / 9).sin() + 0.6 * (t / 23).cos() + 0.4 * torch.randn(1600)
window = 24
start = 0 if healthy else 1
x = torch.stack([series[i + start : i + start + window] for i in range(1500)])
y = torch.stack([series[i + window] for i in range(1500)])

model = nn.Sequential(nn.Linear(window, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for past, value in batches(x, y, size=50, steps=300, seed=seed):
    loss = F.mse_loss(model(past).squeeze(1), value)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.4f}")
