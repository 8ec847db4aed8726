"""A network that predicts a mean and a spread, by the Gaussian likelihood.

The density of a sharp prediction is above one, so the loss goes below zero. That is as it should
be; the calibration printed beside it shows that the spreads are right.
"""

import torch
from data import arguments, batches
from torch import nn

ODD = "the loss is negative from early on and keeps falling; two outputs for one target"

_, seed = arguments(__doc__)


def measure(n):
    x = 6 * torch.rand(n, 1) - 3
    spread = 0.05 + 0.08 * torch.sigmoid(2 * x)
    return x, torch.sin(2 * x) * 0.5 + spread * torch.randn(n, 1)


x, y = measure(2000)
x_val, y_val = measure(500)


class MeanAndSpread(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(1, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh())
        self.mean = nn.Linear(48, 1)
        self.log_var = nn.Linear(48, 1)

    def forward(self, x):
        h = self.body(x)
        return self.mean(h), self.log_var(h).clamp(-10, 5).exp()


model = MeanAndSpread()
criterion = nn.GaussianNLLLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=900, eta_min=1e-4)
for step, (xb, yb) in enumerate(batches(x, y, size=100, steps=900, seed=seed), 1):
    model.train()
    mean, var = model(xb)
    loss = criterion(mean, yb, var)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    optimizer.step()
    scheduler.step()
    if step % 100 == 0:
        model.eval()
        with torch.no_grad():
            mean, var = model(x_val)
            inside = ((y_val - mean).abs() < 2 * var.sqrt()).float().mean()
            print(
                f"step {step}: train {loss.item():.3f} val {criterion(mean, y_val, var):.3f} "
                f"within two sigma {inside:.3f}"
            )
