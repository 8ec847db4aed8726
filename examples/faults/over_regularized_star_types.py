"""An MLP tells six types of stars with dropout of 0.9 after each hidden layer, and lags behind.

With nine of ten units gone in three layers in a row hardly a signal comes through; the training
loss stays high and the validation too. The twin drops one in ten.
The place is the dropout layers layers.2, layers.5 and layers.8.
"""

import numpy as np
import pandas as pd
import torch
from data import arguments
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "over_regularized"
ACCEPT = ()
PLACE = ("layers.2", "layers.5", "layers.8", "model", "layers*")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

#              log T (mean, std), log radius (mean, std), metallicity
TYPES = {
    "brown dwarf": (3.38, 0.06, -1.0, 0.10, 0.1),
    "red dwarf": (3.50, 0.04, -0.55, 0.18, 0.0),
    "white dwarf": (4.05, 0.20, -1.95, 0.12, -0.3),
    "main sequence": (3.85, 0.18, 0.25, 0.25, 0.0),
    "supergiant": (3.75, 0.20, 1.70, 0.20, 0.2),
    "hypergiant": (3.70, 0.25, 2.35, 0.25, 0.3),
}


def make_stars(per_type=400):
    r = np.random.default_rng(seed + 5)
    parts = []
    for number, (t, t_std, radius, r_std, metal) in enumerate(TYPES.values()):
        log_t = r.normal(t, t_std, per_type)
        log_r = r.normal(radius, r_std, per_type)
        log_l = 4 * (log_t - 3.76) + 2 * log_r + r.normal(0, 0.3, per_type)
        parts.append(
            pd.DataFrame(
                {
                    "log_temperature": log_t + r.normal(0, 0.04, per_type),
                    "log_luminosity": log_l,
                    "magnitude": 4.74 - 2.5 * log_l + r.normal(0, 0.8, per_type),
                    "colour_index": 7000 / 10**log_t - 0.6 + r.normal(0, 0.15, per_type),
                    "metallicity": r.normal(metal, 0.4, per_type),
                    "type": number,
                }
            )
        )
    return pd.concat(parts, ignore_index=True)


class StarNet(nn.Module):
    def __init__(self, inputs, classes, dropout):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(inputs, 64), nn.ReLU(), nn.Dropout(dropout),
            nn.Linear(64, 64), nn.ReLU(), nn.Dropout(dropout),
            nn.Linear(64, 32), nn.ReLU(), nn.Dropout(dropout),
            nn.Linear(32, classes),
        )  # fmt: skip

    def forward(self, x):
        return self.layers(x)


stars = make_stars()
train, valid = train_test_split(stars, test_size=0.2, stratify=stars["type"], random_state=seed)
columns = stars.columns.drop("type")
mean, std = train[columns].mean(), train[columns].std()
x_train = torch.tensor(((train[columns] - mean) / std).values, dtype=torch.float32)
x_valid = torch.tensor(((valid[columns] - mean) / std).values, dtype=torch.float32)
y_train, y_valid = torch.tensor(train["type"].values), torch.tensor(valid["type"].values)

model = StarNet(len(columns), len(TYPES), dropout=0.1 if healthy else 0.9)
loader = DataLoader(TensorDataset(x_train, y_train), batch_size=64, shuffle=True)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
criterion = nn.CrossEntropyLoss()
for epoch in range(25):
    model.train()
    losses, right = [], 0
    for x, y in loader:
        optimizer.zero_grad()
        out = model(x)
        loss = criterion(out, y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        right += (out.argmax(1) == y).sum().item()
    model.eval()
    with torch.no_grad():
        accuracy = (model(x_valid).argmax(1) == y_valid).float().mean().item()
    if epoch % 4 == 0:
        print(f"Epoch {epoch:2d} | train loss {np.mean(losses):.3f} acc {right / len(y_train):.3f}"
              f" | val acc {accuracy:.3f}")  # fmt: skip
