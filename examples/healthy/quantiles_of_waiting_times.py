"""Quantiles of waiting times at a clinic: the pinball loss of the 10th, 50th and 90th part.

Waiting times scatter widely, and the loss soon stands still far above zero: this is the scatter.
The three outputs are right when one in ten waits longer than the highest.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = "the loss falls for a short time only: what is left is the scatter that is to be measured"

_, seed = arguments(__doc__)
PARTS = torch.tensor([0.1, 0.5, 0.9])


def visits(n, g):
    x = torch.randn(n, 6, generator=g)
    centre = 0.9 * x[:, 0] - 0.5 * x[:, 1] * (x[:, 2] > 0) + 0.4 * x[:, 3]
    spread = (0.3 * x[:, 4] - 0.7).exp()
    return x, centre + spread * torch.randn(n, generator=g)


def pinball(out, y):
    gap = y.unsqueeze(1) - out
    return torch.maximum(PARTS * gap, (PARTS - 1) * gap).mean()


class Quantiles(nn.Module):
    """The lowest part, and what the others lie above it."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU())
        self.low, self.above = nn.Linear(32, 1), nn.Linear(32, 2)

    def forward(self, x):
        h = self.body(x)
        low = self.low(h)
        return torch.cat([low, low + nn.functional.softplus(self.above(h)).cumsum(1)], 1)


x, y = visits(5000, torch.Generator().manual_seed(seed))
train = DataLoader(TensorDataset(x[:4000], y[:4000]), batch_size=64, shuffle=True)
model = Quantiles()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
for epoch in range(10):
    total = 0.0
    for xb, yb in train:
        loss = pinball(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / len(train)
    schedule.step()
    with torch.no_grad():
        out = model(x[4000:])
        val = pinball(out, y[4000:]).item()
        below = (y[4000:, None] < out).float().mean(0).tolist()
    print(f"epoch {epoch}: {total:.4f} val {val:.4f} below {' '.join(f'{b:.2f}' for b in below)}")
