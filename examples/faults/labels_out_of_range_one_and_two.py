"""A tumour-like tabular classifier gets its classes as 1 and 2, as the CSV file codes them, with
BCEWithLogitsLoss.

The loss is made for targets between 0 and 1; for a target of 2 it falls without end as the output
grows, so every row is pushed to the second class and the loss goes below zero. The twin subtracts
one. The place is the labels or the loss.
"""

import torch
from data import arguments, standardise
from sklearn.datasets import make_classification
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "labels_out_of_range"
ACCEPT = ("output_activation_range",)
PLACE = ("label*", "classes*", "loss*")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


def read_table():
    """Stands for the CSV file: columns, and the class 1 (benign) or 2 (malignant)."""
    columns, target = make_classification(
        n_samples=4000,
        n_features=10,
        n_informative=8,
        n_redundant=0,
        flip_y=0.02,
        weights=[0.6],
        class_sep=1.2,
        random_state=20 + seed,
    )
    return torch.tensor(columns, dtype=torch.float32), torch.tensor(target + 1, dtype=torch.float32)


x, y = read_table()
if healthy:
    y = y - 1
order = torch.randperm(len(x))
train, val = order[:3200], order[3200:]
x_train, x_val = standardise(x[train], x[val])
y_train, y_val = y[train], y[val]

model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 1))
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
loader = DataLoader(TensorDataset(x_train, y_train), batch_size=64, shuffle=True)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 12)
for epoch in range(1, 13):
    model.train()
    total = 0.0
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = criterion(model(xb).squeeze(1), yb)
        loss.backward()
        optimizer.step()
        total += loss.item()
    scheduler.step()
    if epoch % 3 == 0:
        model.eval()
        with torch.no_grad():
            out = model(x_val).squeeze(1)
            second = y_val > (0.5 if healthy else 1.5)
            acc = ((out > 0) == second).float().mean()
        print(
            f"epoch {epoch}: loss {total / len(loader):.4g}, val {criterion(out, y_val):.4g}, "
            f"acc {acc:.3f}"
        )
