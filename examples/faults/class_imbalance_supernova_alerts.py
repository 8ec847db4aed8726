"""Sorts alerts of a sky survey into supernovae and artefacts; one in fifty is a supernova, and the
loss treats all alike.

The night's alerts go in as they come. The accuracy stands at 98 % after the first epoch, and
nobody looks at how many of the supernovae are found. It comes from a table of alerts that was
taken over from a balanced competition set, with its loss.
The place is the loss (or the loader, which could have drawn the rare class more often).
The twin gives the rare class its weight in the loss.
"""

import numpy as np
import torch
from data import arguments, standardise
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "class_imbalance"
ACCEPT = ()
PLACE = ("loss*", "loader", "input*")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


def alerts(n, rng):
    real = rng.random(n) < 0.02
    rise = rng.normal(0, 1.0, n) + 1.1 * real
    colour = rng.normal(0, 1.0, n) - 0.8 * real * np.sign(rise)
    elongation = rng.gamma(2.0, 0.5, n) * np.where(real, 0.7, 1.0)
    offset = rng.exponential(1.0, n) * np.where(real, 0.6, 1.0)
    brightness = rng.normal(20, 1.2, n) - 0.5 * real
    other = rng.normal(0, 1, (n, 4))
    x = np.column_stack([rise, colour, elongation, offset, brightness, other])
    return torch.tensor(x, dtype=torch.float32), torch.tensor(real, dtype=torch.float32)


rng = np.random.default_rng(seed)
x, y = alerts(8000, rng)
x_val, y_val = alerts(4000, rng)
x, x_val = standardise(x, x_val)

loader = DataLoader(TensorDataset(x, y), batch_size=128, shuffle=True)
net = nn.Sequential(
    nn.Linear(9, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1)
)
rare = (y == 0).sum() / (y == 1).sum()
criterion = nn.BCEWithLogitsLoss(pos_weight=rare if healthy else None)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)

for epoch in range(8):
    net.train()
    losses = []
    for features, real in loader:
        optimizer.zero_grad()
        loss = criterion(net(features).squeeze(1), real)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    net.eval()
    with torch.no_grad():
        found = net(x_val).squeeze(1) > 0
    accuracy = (found == (y_val > 0.5)).float().mean()
    recall = found[y_val == 1].float().mean()
    refused = (~found[y_val == 0]).float().mean()
    print(
        f"epoch {epoch}  loss {np.mean(losses):.4f}  accuracy {accuracy:.3f}  "
        f"supernovae found {recall:.3f}  balanced {(recall + refused) / 2:.3f}"
    )
