"""Fraud on a made-up table: the rare class is oversampled, and then the table is split.

Copies of one fraudulent row land on both sides, and the validation score is that of rows the net
was trained on. On the fresh month that follows the number is much lower. The place is the data.
The twin splits first and oversamples the training part alone.
"""

import numpy as np
import torch
from data import arguments, standardise
from sklearn.metrics import balanced_accuracy_score, recall_score
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "train_val_overlap"
ACCEPT = ()
PLACE = ("data",)
SILENT = True
EXACT = True
EARLY = False

healthy, seed = arguments(__doc__)
rng = np.random.default_rng(seed)
TASTE = np.random.default_rng(77).normal(0, 1, (2, 18))


def month(n):
    x = rng.normal(0, 1, (n, 18))
    score = x @ TASTE[0] * 0.5 + np.abs(x @ TASTE[1]) * 0.4 + rng.normal(0, 1.3, n)
    return x.astype(np.float32), (score > 4.4).astype(np.int64)


def oversample(x, y):
    """Draws rows of the rare class until both are alike in number."""
    rare = np.flatnonzero(y == 1)
    extra = rng.choice(rare, (y == 0).sum() - len(rare))
    rows = rng.permutation(np.concatenate([np.arange(len(y)), extra]))
    return x[rows], y[rows]


x, y = month(1800)
x_fresh, y_fresh = month(4000)
if healthy:
    x, x_val, y, y_val = train_test_split(x, y, test_size=0.25, stratify=y, random_state=seed)
    x, y = oversample(x, y)
else:
    x, y = oversample(x, y)
    x, x_val, y, y_val = train_test_split(x, y, test_size=0.25, stratify=y, random_state=seed)
x, x_val, x_fresh = standardise(*(torch.tensor(part) for part in (x, x_val, x_fresh)))

loader = DataLoader(TensorDataset(x, torch.tensor(y)), batch_size=128, shuffle=True)
model = nn.Sequential(nn.Linear(18, 96), nn.ReLU(), nn.Dropout(0.2), nn.Linear(96, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.02)
criterion = nn.CrossEntropyLoss()

for epoch in range(11):
    model.train()
    total = 0.0
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        optimizer.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        out = model(x_val)
        val_loss = criterion(out, torch.tensor(y_val)).item()
        guess = out.argmax(1).numpy()
    print(
        f"epoch {epoch:2d} loss {total / len(loader):.3f} val loss {val_loss:.3f} "
        f"recall of fraud {recall_score(y_val, guess):.3f} "
        f"balanced {balanced_accuracy_score(y_val, guess):.3f}"
    )
with torch.no_grad():
    guess = model(x_fresh).argmax(1).numpy()
print(
    f"the fresh month: recall {recall_score(y_fresh, guess):.3f} "
    f"balanced {balanced_accuracy_score(y_fresh, guess):.3f}"
)
