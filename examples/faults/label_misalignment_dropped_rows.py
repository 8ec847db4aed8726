"""A tabular classifier drops bad rows from the features and forgets to drop them from the labels.

Rows with a failed measurement (coded -1) are removed from the table; the labels are only cut to the
same length. From the first dropped row on every row has the label of a later one, so there is next
to nothing to learn and accuracy stays at chance. The twin applies the same mask to both. The place
is the labels or the loader.
"""

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "label_misalignment"
ACCEPT = ()
PLACE = ("label*", "classes*", "loader")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


def read_table():
    r = np.random.default_rng(seed + 5)
    n = 3000
    x = r.gamma(3.0, 1.0, (n, 8))
    z = (x - 3) / 1.73
    score = np.stack(
        [
            z[:, 0] + z[:, 1] * z[:, 2],
            z[:, 3] - z[:, 4],
            z[:, 5] ** 2 - 1,
            -z[:, 0] + z[:, 6] + 0.3 * z[:, 7],
        ],
        1,
    )
    label = (2 * score + r.gumbel(0, 0.4, score.shape)).argmax(1)
    failed = r.random(n) < 0.06
    x[failed, r.integers(0, 8, failed.sum())] = -1
    return x, label


x, y = read_table()
good = (x >= 0).all(1)
x = x[good]
y = y[good] if healthy else y[: len(x)]

order = np.random.default_rng(seed).permutation(len(x))
train, val = order[:2200], order[2200:]
mean, std = x[train].mean(0), x[train].std(0)
x = torch.tensor((x - mean) / std, dtype=torch.float32)
y = torch.tensor(y)

model = nn.Sequential(
    nn.Linear(8, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 4)
)
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
criterion = nn.CrossEntropyLoss()
x_train, y_train, x_val, y_val = x[train], y[train], x[val], y[val]
for epoch in range(1, 21):
    model.train()
    total = 0.0
    for rows in torch.randperm(len(x_train)).split(64):
        optimizer.zero_grad()
        loss = criterion(model(x_train[rows]), y_train[rows])
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows)
    if epoch % 4 == 0:
        model.eval()
        with torch.no_grad():
            out = model(x_val)
        acc = (out.argmax(1) == y_val).float().mean()
        print(
            f"[{epoch}] train {total / len(x_train):.3f} "
            f"val {criterion(out, y_val):.3f} acc {acc:.3f}"
        )
