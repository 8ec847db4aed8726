"""The click rate of an advertisement is clicks / shown; a handful of new ones were never shown.

0 / 0 is NaN in four rows of 1,800. The first batch with one of them makes the loss NaN and one step
later every weight is. The place is the input (the loader's feature column).
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "nan_input"
ACCEPT = ()
PLACE = ("input*", "loader", "0", "")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
rng = np.random.default_rng(seed)
n = 2200
shown = rng.poisson(60, n).astype(np.float64)
appeal = rng.beta(4, 12, n)
shown[rng.choice(1800, 4, replace=False)] = 0
clicks = rng.binomial(shown.astype(int), appeal).astype(np.float64)
price = rng.lognormal(1.0, 0.4, n)
size = rng.integers(0, 3, n)
with np.errstate(invalid="ignore"):
    rate = clicks / shown
if healthy:
    rate = (clicks + 5) / (shown + 20)  # smoothed towards a quarter
logit = 14 * (appeal - 0.25) + 1.2 * (size - 1) - 1.5 * (np.log(price) - 1)
sold = (rng.random(n) < 1 / (1 + np.exp(-1.5 * logit))).astype(np.float32)

columns = np.stack([rate, np.log(price), size == 0, size == 1, size == 2, np.log1p(shown)], 1)
columns = (columns - np.nanmean(columns, 0)) / np.nanstd(columns, 0)
x, y = torch.tensor(columns, dtype=torch.float32), torch.tensor(sold)

model = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 1), nn.Flatten(0))
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
criterion = nn.BCEWithLogitsLoss()
loader = DataLoader(TensorDataset(x[:1800], y[:1800]), batch_size=60, shuffle=True)
for epoch in range(10):
    losses = []
    for features, label in loader:
        loss = criterion(model(features), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    with torch.no_grad():
        right = ((model(x[1800:]) > 0).float() == y[1800:]).float().mean()
    print(f"epoch {epoch}: loss {np.mean(losses):.4f}, validation accuracy {right:.3f}")
