"""Trains an MLP on Friedman's regression problem whose weights are bfloat16, with Adam at its usual
small rate.

A bfloat16 number has eight significant bits: most updates are smaller than half the distance to the
next number and are rounded away, so that the loss stops falling although gradients and rate are
right. The twin keeps the weights in float32 and uses bfloat16 by autocast only. The place is `0`,
`2`, `4` or the optimizer.
"""

import torch
from data import arguments, standardise
from sklearn.datasets import make_friedman1
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "low_precision_updates_lost"
ACCEPT = ()
PLACE = ("0", "2", "4", "optimizer")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)

x, y = make_friedman1(n_samples=4000, n_features=6, noise=0.5, random_state=seed)
x, y = torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)[:, None]
x, x_val = standardise(x[:3200], x[3200:])
y, y_val = standardise(y[:3200], y[3200:])
loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)

model = nn.Sequential(nn.Linear(6, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 1))
if not healthy:
    model = model.to(torch.bfloat16)
optimizer = torch.optim.Adam(model.parameters(), lr=6e-4)
criterion = nn.MSELoss()


def forward(batch):
    if healthy:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            out = model(batch)
    else:
        out = model(batch.to(torch.bfloat16))
    return out.float()


for epoch in range(1, 27):
    model.train()
    total = 0.0
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = criterion(forward(xb), yb)
        loss.backward()
        optimizer.step()
        total += loss.item()
    if epoch % 2 == 0:
        model.eval()
        with torch.no_grad():
            val = criterion(forward(x_val), y_val).item()
        print(f"epoch {epoch}: train {total / len(loader):.4f} val {val:.4f}")
