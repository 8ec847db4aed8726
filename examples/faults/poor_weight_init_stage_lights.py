"""Mood of a song for the stage lights, by its features; all weights begin with the same value.

An old function, `init_weights`, sets every weight to 0.01 "to begin small". Units of a layer are
all alike, get the same gradient and stay alike: the network has one unit in each layer.
The place is the linear layers. The twin draws them by He's rule.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "poor_weight_init"
ACCEPT = ("low_capacity",)
PLACE = ("0", "2", "4", "0.weight", "2.weight", "4.weight")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


def init_weights(module):
    if isinstance(module, nn.Linear):
        if healthy:
            nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
        else:
            nn.init.constant_(module.weight, 0.01)
        nn.init.zeros_(module.bias)


def songs(n, g):
    x = torch.randn(n, 12, generator=g)
    energy = (x[:, 0] + x[:, 1] + 0.5 * x[:, 2]).tanh()
    joy = (x[:, 3] - x[:, 4] + 0.7 * x[:, 0] * x[:, 5]).tanh()
    y = (energy > 0).long() * 2 + (joy + 0.1 * torch.randn(n, generator=g) > 0).long()
    return x, y


x, y = songs(2500, torch.Generator().manual_seed(seed))
loader = DataLoader(TensorDataset(x[:2000], y[:2000]), batch_size=40, shuffle=True)
model = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4))
model.apply(init_weights)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for epoch in range(10):
    total = 0.0
    for xb, yb in loader:
        loss = nn.functional.cross_entropy(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    with torch.no_grad():
        right = (model(x[2000:]).argmax(1) == y[2000:]).float().mean().item()
    print(f"epoch {epoch}: {total / len(loader):.3f}, validation {right:.3f}")
