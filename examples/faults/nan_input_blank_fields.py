"""A network predicts tomorrow's ozone from a weather table in which some fields are blank; they
are read as NaN.

np.genfromtxt turns each blank field into NaN. The writer does not fill them in, so the first
batch with such a row makes the loss and then all weights NaN. The place is the input (column 2,
humidity).
"""

import io

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "nan_input"
ACCEPT = ()
PLACE = ("input*", "loader")
SILENT = False
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

# the station writes a CSV file; the humidity sensor fails now and then
rng = np.random.default_rng(seed)
lines = ["temperature,pressure,humidity,wind,sun,ozone"]
for _ in range(2000):
    t, p, h = rng.normal(18, 7), rng.normal(1013, 9), rng.uniform(25, 98)
    w, s = rng.gamma(2, 3), rng.uniform(0, 14)
    ozone = 30 + 1.8 * t + 2.5 * s - 0.35 * h - 14 * np.log1p(w) + 0.05 * t * s + rng.normal(0, 8)
    field = "" if rng.random() < 0.03 else f"{h:.1f}"
    lines.append(f"{t:.1f},{p:.1f},{field},{w:.2f},{s:.1f},{ozone:.1f}")
table = np.genfromtxt(io.StringIO("\n".join(lines)), delimiter=",", skip_header=1)

features, target = table[:, :5], table[:, 5:]
train_features = features[:1500]
if healthy:
    features = np.where(np.isnan(features), np.nanmedian(train_features, axis=0), features)
features = (features - np.nanmean(train_features, axis=0)) / np.nanstd(train_features, axis=0)
target = (target - target[:1500].mean()) / target[:1500].std()

x = torch.tensor(features, dtype=torch.float32)
y = torch.tensor(target, dtype=torch.float32)
train_loader = DataLoader(TensorDataset(x[:1500], y[:1500]), batch_size=50, shuffle=True)
val_loader = DataLoader(TensorDataset(x[1500:], y[1500:]), batch_size=100)

model = nn.Sequential(nn.Linear(5, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 1))
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
history = []
for epoch in range(25):
    model.train()
    train_loss = 0.0
    for xb, yb in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        optimizer.step()
        train_loss += loss.item() / len(train_loader)

    model.eval()
    val_loss = 0.0
    with torch.no_grad():
        for xb, yb in val_loader:
            val_loss += criterion(model(xb), yb).item() / len(val_loader)
    history.append((train_loss, val_loss))
    print("epoch", epoch + 1, "train", round(train_loss, 4), "val", round(val_loss, 4))
