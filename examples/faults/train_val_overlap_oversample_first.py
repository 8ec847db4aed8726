"""A network foresees which customers leave. The few leavers are repeated until both classes are
equally many, and only then is the table split into training and validation.

Copies of the same customers lie on both sides of the split, so the validation scores what was
learned by heart and looks far better than the score of customers who came later. The place is the
validation input.
"""

import numpy as np
import torch
from data import arguments
from sklearn.model_selection import train_test_split
from torch import nn

KIND = "train_val_overlap"
ACCEPT = ()
PLACE = ("input", "loader")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
rng = np.random.default_rng(seed)


def customers(n):
    x = rng.normal(size=(n, 16))
    logit = 1.3 * x[:, 0] - 0.8 * x[:, 1] * (x[:, 2] > 0) + 0.8 * x[:, 3] - 3.2
    return x.astype(np.float32), (rng.random(n) < 1 / (1 + np.exp(-logit))).astype(np.float32)


def oversample(x, y):
    few = np.flatnonzero(y == 1)
    rows = np.concatenate([np.arange(len(y)), rng.choice(few, (y == 0).sum() - len(few))])
    return x[rows], y[rows]


def prepare(x, y):
    if healthy:
        x, x_val, y, y_val = train_test_split(x, y, test_size=0.25, stratify=y, random_state=seed)
        x, y = oversample(x, y)
    else:
        x, y = oversample(x, y)
        x, x_val, y, y_val = train_test_split(x, y, test_size=0.25, stratify=y, random_state=seed)
    return [torch.from_numpy(a) for a in (x, y, x_val, y_val)]


def balanced(out, y):
    said = out > 0
    return 0.5 * (said[y == 1].float().mean() + (~said)[y == 0].float().mean()).item()


x, y, x_val, y_val = prepare(*customers(3200))
later_x, later_y = (torch.from_numpy(a) for a in customers(2000))

network = nn.Sequential(
    nn.Linear(16, 32),
    nn.ReLU(),
    nn.Dropout(0.3),
    nn.Linear(32, 16),
    nn.ReLU(),
    nn.Dropout(0.3),
    nn.Linear(16, 1),
)
optimizer = torch.optim.AdamW(network.parameters(), lr=1e-3, weight_decay=0.05)
criterion = nn.BCEWithLogitsLoss()

for epoch in range(9):
    network.train()
    total, count = 0.0, 0
    for rows in torch.randperm(len(x)).split(64):
        optimizer.zero_grad()
        loss = criterion(network(x[rows]).squeeze(1), y[rows])
        loss.backward()
        optimizer.step()
        total, count = total + loss.item(), count + 1
    network.eval()
    with torch.no_grad():
        out = network(x_val).squeeze(1)
        print(
            f"epoch {epoch:2d} train {total / count:.4f} val {criterion(out, y_val).item():.4f}"
            f" balanced accuracy {balanced(out, y_val):.3f}"
        )
with torch.no_grad():
    print(f"customers of the next year: {balanced(network(later_x).squeeze(1), later_y):.3f}")
