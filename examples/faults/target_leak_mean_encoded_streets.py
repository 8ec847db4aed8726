"""The street of a flat is encoded by the mean rent of its flats - computed over all rows, before
the split, and most streets have one flat or two.

The column nearly is the rent itself, in training and validation alike; for a new street there is no
such mean and the model is lost. The place is the input: that column.
"""

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "target_leak"
ACCEPT = ("train_val_overlap",)
PLACE = ("input*", "loader", "embed*", "first*", "0", "net.0", "")
SILENT = True
EXACT = False
EARLY = False


def flats(r, n):
    street = r.integers(0, int(1.2 * n), n)
    area, rooms, floor = r.normal(70, 20, n), r.integers(1, 6, n), r.integers(0, 9, n)
    district = r.integers(0, 5, n)
    rent = 9 * area + 60 * rooms + 12 * floor + 90 * district + r.normal(0, 220, n)
    return street, np.stack([area, rooms, floor, *(district == d for d in range(5))], 1), rent


def encode(street, rent, rows):
    """The mean rent of each street by `rows`; their overall mean where there is none."""
    sums, counts = np.zeros(street.max() + 1), np.zeros(street.max() + 1)
    np.add.at(sums, street[rows], rent[rows])
    np.add.at(counts, street[rows], 1)
    means = np.where(counts > 0, sums / np.maximum(counts, 1), rent[rows].mean())
    return means[street]


def leave_one_out(street, rent, rows):
    """As `encode`, but no row of `rows` contributes to its own value."""
    sums, counts = np.zeros(street.max() + 1), np.zeros(street.max() + 1)
    np.add.at(sums, street[rows], rent[rows])
    np.add.at(counts, street[rows], 1)
    own = np.zeros(len(street))
    own[rows] = 1
    left = counts[street] - own
    means = (sums[street] - own * rent) / np.maximum(left, 1)
    return np.where(left > 0, means, rent[rows].mean())


healthy, seed = arguments(__doc__)
street, columns, rent = flats(np.random.default_rng(seed), 2400)
train, val, new = np.arange(1500), np.arange(1500, 1900), np.arange(1900, 2400)
if healthy:
    by_street = leave_one_out(street, rent, train)
else:
    by_street = encode(street, rent, np.concatenate([train, val]))
    new = new[~np.isin(street[new], street[:1900])]
x = np.column_stack([by_street, columns])
x = torch.tensor((x - x[train].mean(0)) / x[train].std(0), dtype=torch.float32)
y = torch.tensor((rent - rent[train].mean()) / rent[train].std(), dtype=torch.float32)

net = nn.Sequential(nn.Linear(9, 24), nn.ReLU(), nn.Linear(24, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3, weight_decay=1e-3)
for epoch in range(15):
    np.random.shuffle(train)
    for rows in np.array_split(train, 25):
        loss = nn.functional.huber_loss(net(x[rows]).squeeze(1), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        errors = [
            (net(x[part]).squeeze(1) - y[part]).square().mean().item() for part in (train, val, new)
        ]
    if epoch % 3 == 2:
        print(
            "epoch {}: mean squared error train {:.3f}, val {:.3f}, new flats {:.3f}".format(
                epoch, *errors
            )
        )
