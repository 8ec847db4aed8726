"""A network gives mean and spread of a river's level; the loss is the Gaussian NLL and becomes
negative.

It looks odd, since the loss crosses zero and goes on below it. It is sound: the density of a
narrow Gaussian is above one, the variance has a floor by softplus, and the calibration (share
within one sigma) stays near 0.68 on the validation part.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = (
    "A network gives mean and spread of a river's level; the loss is the Gaussian NLL and "
    "becomes negative"
)
_, seed = arguments(__doc__)
rng = np.random.default_rng(seed + 50)

n = 4000
rain = rng.gamma(0.7, 2.0, n)
soil = rng.uniform(0, 1, n)
snow = rng.gamma(1.0, 0.5, n)
month = rng.integers(1, 13, n)
season = np.sin(2 * np.pi * month / 12)
level = 0.35 * np.log1p(rain) * (0.4 + soil) + 0.2 * snow * (season > 0) + 0.1 * season
spread = 0.02 + 0.05 * soil + 0.02 * np.log1p(rain)
level = level + spread * rng.normal(size=n)
x = np.stack([np.log1p(rain), soil, snow, season, np.cos(2 * np.pi * month / 12)], 1)
x = torch.tensor((x - x[:3000].mean(0)) / x[:3000].std(0), dtype=torch.float32)
y = torch.tensor(level, dtype=torch.float32)


class RiverNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(5, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU())
        self.mean = nn.Linear(64, 1)
        self.scale = nn.Linear(64, 1)

    def forward(self, x):
        h = self.trunk(x)
        var = nn.functional.softplus(self.scale(h)).square() + 1e-4
        return self.mean(h).squeeze(1), var.squeeze(1)


model = RiverNet()
nll = nn.GaussianNLLLoss(full=True)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-5)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 25)
loader = DataLoader(TensorDataset(x[:3000], y[:3000]), batch_size=64, shuffle=True, drop_last=True)
for epoch in range(25):
    model.train()
    losses = []
    for xb, yb in loader:
        mean, var = model(xb)
        loss = nll(mean, yb, var)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        losses.append(loss.item())
    scheduler.step()
    model.eval()
    with torch.no_grad():
        mean, var = model(x[3000:])
        val = nll(mean, y[3000:], var).item()
        inside = ((y[3000:] - mean).abs() < var.sqrt()).float().mean().item()
    print(
        f"epoch {epoch + 1:2d} nll {np.mean(losses):.4f} val nll {val:.4f} within one sigma {inside:.3f}"  # noqa: E501
    )
