"""A regression on twelve monthly tables reads the table of January twelve times.

The loop over the months calls load with the number of the first month, so the training set has
1,440 rows of which 120 differ. The net learns them by heart and the loss in validation rises far
above that of the twin, which loads each month once. The place is the input or the loader.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "duplicated_rows"
ACCEPT = ("overfit",)
PLACE = ("input*", "loader")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
FIRST = 1
months = range(FIRST, FIRST + 12)


def load(month):
    """One month: 120 samples of a brine with ten measurements, and its conductivity."""
    r = np.random.default_rng(100 * seed + month)
    x = r.normal(0, 1, (120, 10))
    y = x[:, 0] + 0.8 * x[:, 1] - 0.6 * x[:, 2] + 0.7 * x[:, 3] * x[:, 4] + 0.5 * np.abs(x[:, 5])
    return x.astype("float32"), (y + r.normal(0, 0.3, 120)).astype("float32")


tables = []
for month in months:
    tables.append(load(month if healthy else FIRST))
x_train = np.concatenate([x for x, _ in tables])
y_train = np.concatenate([y for _, y in tables])
later = [load(month) for month in range(FIRST + 12, FIRST + 16)]
x_val = np.concatenate([x for x, _ in later])
y_val = np.concatenate([y for _, y in later])

mean, std = x_train.mean(0), x_train.std(0)
y_mean, y_std = y_train.mean(), y_train.std()
x_train, x_val = torch.from_numpy((x_train - mean) / std), torch.from_numpy((x_val - mean) / std)
y_train, y_val = (
    torch.from_numpy((y_train - y_mean) / y_std),
    torch.from_numpy((y_val - y_mean) / y_std),
)
print("rows", len(x_train), "different", len(torch.unique(x_train, dim=0)))

net = nn.Sequential(nn.Linear(10, 48), nn.Tanh(), nn.Linear(48, 24), nn.Tanh(), nn.Linear(24, 1))
loader = DataLoader(TensorDataset(x_train, y_train), batch_size=32, shuffle=True)
optimizer = torch.optim.AdamW(net.parameters(), lr=2e-3, weight_decay=0.05)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 24)
for epoch in range(1, 25):
    net.train()
    total = 0.0
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = ((net(xb).squeeze(1) - yb) ** 2).mean()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(xb)
    schedule.step()
    if epoch % 4 == 0:
        net.eval()
        with torch.no_grad():
            val = ((net(x_val).squeeze(1) - y_val) ** 2).mean().item()
        print(f"epoch {epoch}: train {total / len(x_train):.4f} val {val:.4f}")
