"""A network foretells wind power with its own uncertainty; the loss is negative from early on.

It looks odd because the loss falls below 0 and keeps falling. It is the negative log density of a
Gaussian, which is negative wherever the density is above 1: for calm hours the spread is a few
hundredths. The validation loss falls along with it, and the stated spread is right (calibration
near 0.68 at the end).
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = "A network foretells wind power with its own uncertainty; the loss is negative from early on"
_, seed = arguments(__doc__)


def turbines(n):
    """Wind, gusts, temperature and wear; the power's error grows with the gusts."""
    wind = 2.5 * torch.randn(n, 2).norm(dim=1) + 1
    gust, warm, wear = torch.rand(n), torch.randn(n), torch.rand(n)
    power = torch.sigmoid(1.2 * (wind - 6)) * (1 - 0.2 * wear) - 0.02 * warm
    power = power + (0.01 + 0.08 * gust**2) * torch.randn(n)
    x = torch.stack([wind, gust, warm, wear], 1)
    return x, power.unsqueeze(1)


class PowerNet(nn.Module):
    def __init__(self, hidden=64):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(4, hidden), nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU()
        )
        self.mean = nn.Linear(hidden, 1)
        self.spread = nn.Linear(hidden, 1)

    def forward(self, x):
        h = self.body(x)
        return self.mean(h), nn.functional.softplus(self.spread(h)) ** 2 + 1e-5


x, y = turbines(5000)
mean, std = x[:4000].mean(0), x[:4000].std(0)
x = (x - mean) / std
train = DataLoader(TensorDataset(x[:4000], y[:4000]), batch_size=64, shuffle=True)
x_val, y_val = x[4000:], y[4000:]
model = PowerNet()
criterion = nn.GaussianNLLLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=20)
for epoch in range(20):
    model.train()
    total = 0.0
    for a, b in train:
        optimizer.zero_grad()
        center, variance = model(a)
        loss = criterion(center, b, variance)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        total += loss.item() / len(train)
    schedule.step()
    model.eval()
    with torch.no_grad():
        center, variance = model(x_val)
        val = criterion(center, y_val, variance).item()
        inside = ((y_val - center).abs() < variance.sqrt()).float().mean().item()
    print(f"epoch {epoch} train {total:.4f} val {val:.4f} within one spread {inside:.3f}")
