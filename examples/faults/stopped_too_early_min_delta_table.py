"""Twelve activity classes from a table of 24 features; early stopping with a min_delta copied from
elsewhere.

`min_delta=0.25` came from a project where the loss was a sum over the batch. Here it is a mean, so
an epoch that improves by less than 0.25 counts as none, and the callback ends the training while
it is still in full descent. The place is the loop (the stopper). The twin has min_delta=0.002.
"""

import torch
from data import arguments
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "stopped_too_early"
ACCEPT = ()
PLACE = ("loop",)
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)


class EarlyStopping:
    def __init__(self, patience=3, min_delta=0.0):
        self.patience, self.min_delta = patience, min_delta
        self.best, self.bad = float("inf"), 0

    def __call__(self, value):
        if value < self.best - self.min_delta:
            self.best, self.bad = value, 0
        else:
            self.bad += 1
        return self.bad >= self.patience


x, y = make_classification(
    n_samples=6000,
    n_features=24,
    n_informative=16,
    n_classes=12,
    n_clusters_per_class=1,
    class_sep=1.4,
    flip_y=0.02,
    random_state=seed,
)
x, x_val, y, y_val = train_test_split(x, y, test_size=0.25, stratify=y, random_state=seed)
scaler = StandardScaler().fit(x)
x, x_val = (torch.tensor(scaler.transform(p), dtype=torch.float32) for p in (x, x_val))
y, y_val = torch.tensor(y), torch.tensor(y_val)

loader = DataLoader(TensorDataset(x, y), batch_size=96, shuffle=True)
model = nn.Sequential(nn.Linear(24, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 12))
optimizer = torch.optim.SGD(model.parameters(), lr=0.03, momentum=0.8, weight_decay=1e-4)
criterion = nn.CrossEntropyLoss()
stopper = EarlyStopping(patience=2, min_delta=0.002 if healthy else 0.25)

for epoch in range(1, 31):
    model.train()
    total = 0.0
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(xb)
    model.eval()
    with torch.no_grad():
        out = model(x_val)
        val_loss = criterion(out, y_val).item()
        val_acc = (out.argmax(1) == y_val).float().mean().item()
    print(
        f"epoch {epoch:2d}  train {total / len(x):.4f}  val {val_loss:.4f}  "
        f"val accuracy {val_acc:.3f}"
    )
    if stopper(val_loss):
        print(f"early stopping at epoch {epoch}")
        break
