"""Load of a power grid by hour, weekday and weather: the hidden width is divided down to one unit.

The `shrink` factor of the config is applied before every layer, the first one included, so that "8
with shrink 4" makes 2, 1 and 1 units. Training loss and validation loss stand still together far
above the noise. The place is the body. The twin has 64 units in each layer.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "low_capacity"
ACCEPT = ()
PLACE = (
    "body",
    "body.0",
    "body.2",
    "body.4",
    "body.0.weight",
    "body.2.weight",
    "body.4.weight",
    "body.6",
    "body.6.weight",
)
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
config = {"width": 64 if healthy else 8, "shrink": 1 if healthy else 4, "layers": 3, "lr": 3e-3}


def load(n, rng):
    hour, weekday = rng.integers(0, 24, n), rng.integers(0, 7, n)
    temp = rng.normal(10, 8, n)
    work = weekday < 5
    y = 3 * np.exp(-((hour - 8) ** 2) / 6) * work + 2 * np.exp(-((hour - 19) ** 2) / 9)
    y = y + 0.1 * np.maximum(0, 15 - temp) + 0.12 * np.maximum(0, temp - 20) * (hour > 9)
    angle = 2 * np.pi * hour / 24
    x = np.stack(
        [
            np.sin(angle),
            np.cos(angle),
            np.sin(2 * angle),
            np.cos(2 * angle),
            work * 2 - 1.0,
            (temp - 10) / 8,
        ],
        1,
    )
    return x.astype(np.float32), (y + rng.normal(0, 0.15, n)).astype(np.float32)


def build(features, width, shrink, layers, **_):
    modules, size = [], features
    for _ in range(layers):
        width = max(1, width // shrink)
        modules += [nn.Linear(size, width), nn.Tanh()]
        size = width
    return nn.Sequential(*modules, nn.Linear(size, 1))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = build(6, **config)

    def forward(self, x):
        return self.body(x).squeeze(1)


rng = np.random.default_rng(seed)
x, y = (torch.tensor(a) for a in load(2500, rng))
x_val, y_val = (torch.tensor(a) for a in load(600, rng))
mean, std = y.mean(), y.std()
y, y_val = (y - mean) / std, (y_val - mean) / std
train = DataLoader(TensorDataset(x, y), batch_size=100, shuffle=True)

model = Model()
optimizer = torch.optim.Adam(model.parameters(), lr=config["lr"])
for epoch in range(24):
    model.train()
    total = 0.0
    for xb, yb in train:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(xb), yb)
        loss.backward()
        optimizer.step()
        total += loss.item() / len(train)
    model.eval()
    with torch.no_grad():
        error = nn.functional.mse_loss(model(x_val), y_val).item()
    print(f"epoch {epoch:2d} train {total:.3f} val mse {error:.3f}")
