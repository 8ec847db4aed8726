"""Demand for a night bus as three quantiles (5 %, 50 %, 95 %) from one output of width three.

The pinball loss of a quantile has gradients of a fixed size; outputs lie above or below most of
the targets on purpose, and the target (B, 1) meets the output (B, 3) by broadcasting, as meant.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = (
    "the output (B, 3) and the target (B, 1) differ in shape; two of three outputs are far off "
    "nearly all targets"
)

_, seed = arguments(__doc__)
LEVELS = torch.tensor([0.05, 0.5, 0.95])


def nights(n, g):
    hour = 6 * torch.rand(n, generator=g)
    friday = (torch.rand(n, generator=g) < 0.3).float()
    cold = torch.randn(n, generator=g)
    mean = 1.5 * torch.exp(-hour / 2) + friday * torch.exp(-(((hour - 3) / 1.2) ** 2)) - 0.2 * cold
    spread = 0.15 + 0.35 * friday + 0.1 * (hour < 1)
    return torch.stack([hour / 2 - 1.5, 2 * friday - 0.6, cold], 1), (
        mean + spread * torch.randn(n, generator=g)
    )[:, None]


def pinball(quantiles, target):
    error = target - quantiles
    return torch.maximum(LEVELS * error, (LEVELS - 1) * error).mean()


class Quantiles(nn.Module):
    """The median, and two positive distances from it, so that the three never cross."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU())
        self.median, self.distance = nn.Linear(48, 1), nn.Linear(48, 2)

    def forward(self, x):
        hidden = self.body(x)
        middle, away = self.median(hidden), nn.functional.softplus(self.distance(hidden))
        return torch.cat([middle - away[:, :1], middle, middle + away[:, 1:]], 1)


g = torch.Generator().manual_seed(seed)
x, y = nights(3000, g)
x_val, y_val = nights(1000, g)
loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)
model = Quantiles()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 12 * len(loader))
for epoch in range(12):
    model.train()
    total = 0.0
    for night, demand in loader:
        loss = pinball(model(night), demand)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        total += loss.item() / len(loader)
    model.eval()
    with torch.no_grad():
        said = model(x_val)
    below = " ".join(f"{share:.3f}" for share in (y_val <= said).float().mean(0).tolist())
    print(
        f"epoch {epoch} train {total:.4f} val {pinball(said, y_val).item():.4f} "
        f"shares below: {below}"
    )
