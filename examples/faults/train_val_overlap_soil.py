"""A network predicts the clay content of soils; the rows are copied before the split, not after.

To have longer epochs, the table is enlarged by copies of its rows. Because the split comes
afterwards, most of the validation rows are in the training part too: the validation error is far
below that on new fields, and stopping by it comes too late. The place is the data/loaders.
"""

import copy

import numpy as np
import torch
from data import arguments, standardise
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "train_val_overlap"
ACCEPT = ()
PLACE = ("loader", "input*")
SILENT = True
EXACT = True
EARLY = False
healthy, seed = arguments(__doc__)

r = np.random.default_rng(150 + seed)
BANDS = 30
mixing = np.cumsum(r.normal(0, 0.35, (5, BANDS)), 1)


def fields(n):
    material = r.dirichlet([2.0, 2.0, 1.5, 1.0, 1.0], n)
    reflectance = material @ mixing * 2 + r.normal(0, 0.12, (n, BANDS))
    clay = 60 * material[:, 0] + 25 * np.sqrt(material[:, 1] * material[:, 2]) + r.normal(0, 8, n)
    return torch.tensor(reflectance, dtype=torch.float32), torch.tensor(clay, dtype=torch.float32)


def enlarge(rows):
    """Every field three times, for a longer epoch."""
    return rows.repeat_interleave(3)


x, clay = fields(600)
x_new, clay_new = fields(1500)
everything = torch.randperm(len(x))
if healthy:
    train, val = enlarge(everything[:400]), everything[400:]
else:
    train, val = torch.utils.data.random_split(enlarge(everything), [0.67, 0.33])
    train, val = train.dataset[train.indices], val.dataset[val.indices]
center, scale = clay[train].mean(), clay[train].std()
x, x_val, x_new = standardise(x[train], x[val], x_new)
y, y_val, y_new = ((c - center) / scale for c in (clay[train], clay[val], clay_new))

model = nn.Sequential(
    nn.Linear(BANDS, 128),
    nn.ReLU(),
    nn.Linear(128, 128),
    nn.ReLU(),
    nn.Linear(128, 1),
    nn.Flatten(0),
)
optimizer = torch.optim.Adam(model.parameters(), lr=7e-4)
train_loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
val_loader = DataLoader(TensorDataset(x_val, y_val), batch_size=128)
EPOCHS, PATIENCE = 40, 6
best, best_state, since = float("inf"), None, 0
for epoch in range(EPOCHS):
    model.train()
    total = 0.0
    for xb, yb in train_loader:
        loss = nn.functional.mse_loss(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(yb)
    model.eval()
    with torch.no_grad():
        error = sum(
            nn.functional.mse_loss(model(xb), yb, reduction="sum").item() for xb, yb in val_loader
        ) / len(y_val)
    print(f"epoch {epoch} train {total / len(y):.4f} val {error:.4f}")
    since += 1
    if error < best:
        best, best_state, since = error, copy.deepcopy(model.state_dict()), 0
    if since == PATIENCE:
        break
model.load_state_dict(best_state)
with torch.no_grad():
    print(f"best val {best:.4f} new fields {nn.functional.mse_loss(model(x_new), y_new):.4f}")
