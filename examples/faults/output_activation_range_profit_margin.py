"""Margins of restaurants for the next month; the network ends in a Softplus, margins do not.

The head is that of the revenue model, whose output is never negative. The margin, standardised, is
below zero for half of the restaurants, which all get about zero.
The place is the head and the loss. The twin ends with the linear layer.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "output_activation_range"
ACCEPT = ("target_not_normalized",)
PLACE = ("head*", "head", "head.1", "head.2", "loss*")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


def restaurants(n):
    r = np.random.default_rng(seed)
    guests, rent, staff = r.normal(0, 1, n), r.normal(0, 1, n), r.normal(0, 1, n)
    price, rating, season = r.normal(0, 1, n), r.normal(0, 1, n), r.uniform(-1, 1, n)
    margin = guests * (1 + 0.4 * price) - 0.7 * rent - 0.6 * staff + 0.5 * season * rating
    margin = margin + 0.3 * r.normal(0, 1, n)
    x = np.stack([guests, rent, staff, price, rating, season * 1.7], 1)
    return torch.tensor(x).float(), torch.tensor((margin - margin.mean()) / margin.std()).float()


class Margin(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 48), nn.ReLU(), nn.Linear(48, 24), nn.ReLU())
        head = [nn.Linear(24, 1)] if healthy else [nn.Linear(24, 1), nn.Softplus()]
        self.head = nn.Sequential(*head)

    def forward(self, x):
        return self.head(self.body(x)).squeeze(1)


x, y = restaurants(2000)
loader = DataLoader(TensorDataset(x[:1600], y[:1600]), batch_size=40, shuffle=True)
model = Margin()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
for epoch in range(12):
    total = 0.0
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(xb), yb)
        loss.backward()
        optimizer.step()
        total += loss.item() / len(loader)
    with torch.no_grad():
        val = nn.functional.mse_loss(model(x[1600:]), y[1600:]).item()
    if epoch % 3 == 2:
        print(f"epoch {epoch + 1}: {total:.4f}, validation {val:.4f}")
