"""Counts of bicycles, cars and people at a crossing; the three heads are kept in a dict.

`self.heads = {"bicycle": nn.Linear(...), ...}` looks like nn.ModuleDict and is a plain dict, whose
layers are no part of the model: parameters() does not list them, and they stay as they were born,
as do the layers of the small towers before them.
The place is the heads. The twin has nn.ModuleDict.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "unregistered_parameters"
ACCEPT = ("parameters_not_in_optimizer",)
PLACE = ("heads*", "heads", "optimizer")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
WHAT = ("bicycle", "car", "person")


def tower(width):
    return nn.Sequential(nn.Linear(width, 24), nn.ReLU(), nn.Linear(24, 1))


class Crossing(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.shared = nn.Sequential(nn.Linear(8, width), nn.ReLU())
        heads = {name: tower(width) for name in WHAT}
        self.heads = nn.ModuleDict(heads) if healthy else heads

    def forward(self, x):
        h = self.shared(x)
        return torch.cat([self.heads[name](h) for name in WHAT], 1)


def hours(n, g):
    x = torch.randn(n, 8, generator=g)
    bicycle = x[:, 0] - (x[:, 1] + 0.5).clamp(min=0) * 1.5 + 0.5 * x[:, 2] * x[:, 3]
    car = x[:, 2] * 0.8 - x[:, 4].abs() + (x[:, 5] * 2).sin()
    person = 0.7 * x[:, 0] + x[:, 6].tanh() * x[:, 3] - 0.4 * x[:, 7]
    y = torch.stack([bicycle, car, person], 1)
    y = (y - y.mean(0)) / y.std(0)
    return x, y + 0.15 * torch.randn(n, 3, generator=g)


x, y = hours(3000, torch.Generator().manual_seed(seed))
loader = DataLoader(TensorDataset(x[:2500], y[:2500]), batch_size=50, shuffle=True)
model = Crossing()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
for epoch in range(12):
    total = 0.0
    for xb, yb in loader:
        loss = nn.functional.mse_loss(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / len(loader)
    with torch.no_grad():
        errors = (model(x[2500:]) - y[2500:]).pow(2).mean(0).tolist()
    if epoch % 3 == 2:
        each = " ".join(f"{name} {error:.3f}" for name, error in zip(WHAT, errors, strict=False))
        print(f"epoch {epoch + 1}: loss {total:.4f} {each}")
