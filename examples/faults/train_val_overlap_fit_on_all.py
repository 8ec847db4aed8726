"""An MLP on a noisy two-class table whose validation rows are also trained on.

The validation part is sampled from the frame but not taken out of it, so the network is graded on
what it learned. A test set that nobody touched, at the end, tells the truth. The place is the data.
The twin trains on the rows that remain.
"""

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "train_val_overlap"
ACCEPT = ()
PLACE = ("loader", "input*")
SILENT = True
EXACT = True
EARLY = False

healthy, seed = arguments(__doc__)


def draw(n):
    x = torch.randn(n, 12)
    z = 1.5 * x[:, 0] - x[:, 1] + x[:, 2] * x[:, 3] + 0.7 * torch.randn(n)
    return x, (z > 0).float()


x, y = draw(900)
x_test, y_test = draw(2000)
val_rows = np.random.choice(len(x), 200, replace=False)
x_val, y_val = x[val_rows], y[val_rows]
if healthy:
    rest = np.setdiff1d(np.arange(len(x)), val_rows)
    x, y = x[rest], y[rest]

model = nn.Sequential(
    nn.Linear(12, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 24), nn.ReLU(), nn.Linear(24, 1)
)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.002, weight_decay=0.1)
loss_fn = nn.BCEWithLogitsLoss()


def score(inputs, labels):
    model.eval()
    with torch.no_grad():
        out = model(inputs)[:, 0]
    return loss_fn(out, labels).item(), ((out > 0) == (labels > 0.5)).float().mean().item()


for epoch in range(11):
    model.train()
    for rows in torch.randperm(len(x)).split(25):
        optimizer.zero_grad()
        loss_fn(model(x[rows])[:, 0], y[rows]).backward()
        optimizer.step()
    print(
        "epoch {}: train {:.3f} ({:.3f}), val {:.3f} ({:.3f})".format(
            epoch, *score(x, y), *score(x_val, y_val)
        )
    )
print("untouched test set: {:.3f} ({:.3f})".format(*score(x_test, y_test)))
