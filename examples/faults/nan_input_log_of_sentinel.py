"""District prices by an MLP: a skewed column goes through a logarithm, and "unknown" is coded as
-1.

The export writes -1 where the number of people is unknown (2 % of the districts). `np.log` makes
nan of it with a warning nobody read, the scaler is nan-safe, and the first batch with such a row
ruins the weights. The place is the input. The twin puts the median in place of -1 first.
"""

import numpy as np
import torch
from data import HOUSE_COLUMNS, arguments, houses
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "nan_input"
ACCEPT = ()
PLACE = ("input", "data")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
PEOPLE = HOUSE_COLUMNS.index("people")


def export():
    """As the data base gives it."""
    x, y, x_val, y_val = houses(seed, raw=True)
    r = np.random.default_rng(seed)
    parts = []
    for part in (x.numpy(), x_val.numpy()):
        part[r.random(len(part)) < 0.02, PEOPLE] = -1
        parts.append(part)
    return parts[0], y, parts[1], y_val


def prepare(x, fitted=None):
    x = x.copy()
    people = x[:, PEOPLE]
    if healthy:
        people[people < 0] = np.median(people[people >= 0])
    with np.errstate(invalid="ignore"):
        x[:, PEOPLE] = np.log(people)
    fitted = fitted or (np.nanmean(x, axis=0), np.nanstd(x, axis=0))
    return torch.from_numpy((x - fitted[0]) / fitted[1]).float(), fitted


x, y, x_val, y_val = export()
x, fitted = prepare(x)
x_val, _ = prepare(x_val, fitted)
loader = DataLoader(TensorDataset(x, y), batch_size=50, shuffle=True)

model = nn.Sequential(nn.Linear(6, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
criterion = nn.MSELoss()

for epoch in range(15):
    model.train()
    total = 0.0
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = criterion(model(xb).squeeze(1), yb)
        loss.backward()
        optimizer.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        error = criterion(model(x_val).squeeze(1), y_val).item()
    print(
        f"epoch {epoch:2d} train {total / len(loader):.4f} val {error:.4f} "
        f"val R2 {1 - error / y_val.var().item():.3f}"
    )
