"""The load of a building by hour, outdoor temperature and time stamp; a new export of the data.

Fault: the export has the time as seconds since 1970 (1.7e9), and goes into the net as it is beside
columns of size one. The place is the input. The loss begins beyond all bounds, falls, and never
comes down to that of the mean.
"""

import torch
from data import arguments, batches
from torch import nn
from torch.nn import functional as F

KIND = "input_not_normalized"
ACCEPT = ()
PLACE = ("input*", "net.0", "0", "loader")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
g = torch.Generator().manual_seed(seed)
N = 2000
hours = torch.arange(N, dtype=torch.float64)
stamp = 1.7e9 + 3600 * hours
day = 2 * torch.pi * hours / 24
warm = torch.randn(N, generator=g)
load = 0.9 * torch.sin(day) + 0.6 * warm.abs() + 0.4 * warm * torch.cos(day)
load = (load + 0.8 * hours / N + 0.15 * torch.randn(N, generator=g)).float()
load = (load - load.mean()) / load.std()
columns = {
    "sin": torch.sin(day).float(),
    "cos": torch.cos(day).float(),
    "warm": warm,
    "time": ((stamp - stamp.mean()) / stamp.std()).float() if healthy else stamp.float(),
}
x = torch.stack(list(columns.values()), 1)
rows = torch.randperm(N, generator=g)
x, y, x_val, y_val = x[rows[:1500]], load[rows[:1500]], x[rows[1500:]], load[rows[1500:]]

net = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
for step, (xb, yb) in enumerate(batches(x, y, size=50, steps=450, seed=seed), 1):
    loss = F.mse_loss(net(xb).squeeze(1), yb)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 90 == 0:
        with torch.no_grad():
            score = 1 - (F.mse_loss(net(x_val).squeeze(1), y_val) / y_val.var()).item()
        print(f"step {step}: loss {loss.item():.4g}, validation R2 {score:.4g}")
print(f"loss {loss.item():.4g} | validation R2 {score:.4g}")
