"""Cell types from single-cell expression: the net gets the raw count matrix, where the tutorial ran
`normalize_total`, `log1p` and `scale` first.

Counts go from 0 to thousands, a few house-keeping genes and the sequencing depth outweigh all else.
The training loss falls, unevenly. The place is the input.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "input_not_normalized"
ACCEPT = ()
PLACE = ("input*", "encoder*", "loader", "")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
GENES, TYPES, CELLS = 120, 6, 1600

rng = np.random.default_rng(70 + seed)
base = rng.lognormal(0.6, 1.0, GENES)
base[:5] *= 200  # house-keeping genes
fold = np.ones((TYPES, GENES))
for k in range(TYPES):
    fold[k, 5 + rng.choice(GENES - 5, 14, replace=False)] = rng.choice([0.3, 2.6], 14)
cell_type = rng.integers(0, TYPES, CELLS)
depth = rng.lognormal(0, 0.7, CELLS)
rate = base * fold[cell_type] * depth[:, None]
counts = rng.poisson(rate * rng.gamma(4, 0.25, rate.shape)).astype(np.float32)


def preprocess(counts, train_rows):
    if not healthy:
        return counts
    x = np.log1p(1e4 * counts / counts.sum(1, keepdims=True))
    mean, std = x[train_rows].mean(0), x[train_rows].std(0) + 1e-6
    return ((x - mean) / std).clip(-10, 10).astype(np.float32)


order = rng.permutation(CELLS)
train_rows, val_rows = order[:1200], order[1200:]
x = preprocess(counts, train_rows)


class Cells(Dataset):
    def __init__(self, rows):
        self.x, self.y = torch.from_numpy(x[rows]), torch.from_numpy(cell_type[rows])

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


class Annotator(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(GENES, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU())
        self.head = nn.Linear(32, TYPES)

    def forward(self, x):
        return self.head(self.encoder(x))


model = Annotator()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-4, weight_decay=1e-4)
criterion = nn.CrossEntropyLoss()
train_loader = DataLoader(Cells(train_rows), batch_size=64, shuffle=True)
val_loader = DataLoader(Cells(val_rows), batch_size=200)


def run(loader, training):
    model.train(training)
    total = right = n = 0
    with torch.set_grad_enabled(training):
        for xb, yb in loader:
            out = model(xb)
            loss = criterion(out, yb)
            if training:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            total += loss.item() * len(yb)
            right += (out.argmax(1) == yb).sum().item()
            n += len(yb)
    return total / n, right / n


for epoch in range(12):
    train = run(train_loader, True)
    val = run(val_loader, False)
print(f"train loss {train[0]:.3f} acc {train[1]:.3f} | val loss {val[0]:.3f} acc {val[1]:.3f}")
