"""Tells sick from healthy patients by heart recordings; rows were doubled before they were split.

The sick are few, so their recordings are repeated until both are even in number, and then the whole
is split at random. Nearly every sick recording of the validation is in the training as well, and
the net may learn them by heart. The place is the validation data.
The twin splits first and repeats within the training part.
"""

import numpy as np
import torch
from data import arguments
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "train_val_overlap"
ACCEPT = ("duplicated_rows",)
PLACE = ("loop", "loader", "input*")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


def recordings(n, sick_share, rng):
    y = (rng.random(n) < sick_share).astype(np.int64)
    t = np.arange(48)
    rate = rng.uniform(0.5, 0.7, (n, 1))
    x = np.sin(rate * t + rng.uniform(0, 6.28, (n, 1)))
    murmur = np.sin(2.6 * rate * t + rng.uniform(0, 6.28, (n, 1)))
    x = x + y[:, None] * 0.75 * murmur + rng.normal(0, 0.8, x.shape)
    return x.astype(np.float32)[:, None], y


def even_out(x, y):
    times = max(1, round((y == 0).sum() / (y == 1).sum()))
    rows = np.concatenate([np.flatnonzero(y == 0), np.repeat(np.flatnonzero(y == 1), times)])
    return x[rows], y[rows]


rng = np.random.default_rng(70 + seed)
x, y = recordings(1000, 0.12, rng)
if healthy:
    x, x_val, y, y_val = train_test_split(x, y, test_size=0.25, stratify=y, random_state=seed)
    x, y = even_out(x, y)
else:
    x, y = even_out(x, y)
    x, x_val, y, y_val = train_test_split(x, y, test_size=0.25, stratify=y, random_state=seed)
x, x_val, y, y_val = map(torch.from_numpy, (x, x_val, y, y_val))
new = [torch.from_numpy(part) for part in recordings(1500, 0.12, rng)]

net = nn.Sequential(
    nn.Conv1d(1, 16, 7, padding=3), nn.ReLU(), nn.MaxPool1d(2),
    nn.Conv1d(16, 24, 5, padding=2), nn.ReLU(), nn.AdaptiveMaxPool1d(4), nn.Flatten(),
    nn.Dropout(0.3), nn.Linear(96, 2),
)  # fmt: skip
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=0.05)


def balanced_accuracy(x, y):
    net.eval()
    with torch.no_grad():
        right = (net(x).argmax(1) == y).float()
    return sum(right[y == k].mean().item() for k in (0, 1)) / 2


for epoch in range(1, 11):
    net.train()
    total = 0.0
    for xb, yb in DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True):
        loss = nn.functional.cross_entropy(net(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(yb) / len(y)
    if epoch % 2 == 0:
        print(f"epoch {epoch} loss {total:.3f} validation {balanced_accuracy(x_val, y_val):.3f}")
print(f"patients of the next year: {balanced_accuracy(*new):.3f}")
