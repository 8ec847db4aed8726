"""A forecaster of river levels has the value that it is to predict as the last value of its window.

The target is taken at i + WINDOW - 1, which is the last index of the slice i : i + WINDOW; the net
needs only to copy it, and the loss falls far below the noise that no forecast can beat. The twin
takes the value after the window. The place is the input, the labels or the loader.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "target_leak"
ACCEPT = ()
PLACE = ("input*", "label*", "classes*", "loader")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
WINDOW = 16

r = np.random.default_rng(seed)
level = np.zeros(3200)
for t in range(2, len(level)):
    level[t] = 1.55 * level[t - 1] - 0.72 * level[t - 2] + r.normal(0, 0.3)
level = level[200:]
cut = 2300
level = ((level - level[:cut].mean()) / level[:cut].std()).astype("float32")


def make(series):
    last = WINDOW if healthy else WINDOW - 1
    x = np.stack([series[i : i + WINDOW] for i in range(len(series) - WINDOW)])
    y = np.stack([series[i + last] for i in range(len(series) - WINDOW)])
    return TensorDataset(torch.from_numpy(x), torch.from_numpy(y))


train_set, val_set = make(level[:cut]), make(level[cut:])
train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
val_loader = DataLoader(val_set, batch_size=256)


class RiverNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(1, 8, 5)
        self.fc1 = nn.Linear(8 * (WINDOW - 4), 32)
        self.fc2 = nn.Linear(32, 1)

    def forward(self, x):
        h = torch.tanh(self.conv(x.unsqueeze(1))).flatten(1)
        return self.fc2(torch.tanh(self.fc1(h))).squeeze(1)


model = RiverNet()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(1, 13):
    model.train()
    train_loss = 0.0
    for xb, yb in train_loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(xb), yb)
        loss.backward()
        optimizer.step()
        train_loss += loss.item() * len(xb)
    model.eval()
    with torch.no_grad():
        val_loss = sum(
            nn.functional.mse_loss(model(xb), yb, reduction="sum").item() for xb, yb in val_loader
        )
    if epoch % 2 == 0:
        print(
            f"epoch {epoch}: train {train_loss / len(train_set):.4f} "
            f"val {val_loss / len(val_set):.4f}"
        )
