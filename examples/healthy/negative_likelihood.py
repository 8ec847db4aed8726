"""A network names a mean and a spread of a signal of small values; the loss, a likelihood, is
negative almost from the start.

The density of a narrow distribution is above one, so minus its logarithm is below zero and goes on
falling until the spread is that of the noise. There is no fault and no place.
"""

import torch
from data import arguments
from torch import nn

ODD = "the loss is negative (a Gaussian log-likelihood of a narrow density) and keeps going down"


class Probe(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 48), nn.SiLU(), nn.Linear(48, 48), nn.SiLU())
        self.mean = nn.Linear(48, 1)
        self.log_var = nn.Linear(48, 1)

    def forward(self, x):
        z = self.body(x)
        return self.mean(z).squeeze(1), self.log_var(z).squeeze(1).clamp(-12, 4)


def measure(n):
    x = torch.rand(n, 3) * 3.46 - 1.73
    spread = 0.03 + 0.05 * (x[:, 2] + 1.73)
    y = torch.sin(1.5 * x[:, 0]) + 0.5 * x[:, 1]
    return x, y + spread * torch.randn(n)


arguments(__doc__)
x, y = measure(4000)
x_val, y_val = measure(1000)
model = Probe()
criterion = nn.GaussianNLLLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 500)
for step in range(500):
    rows = torch.randint(0, 4000, (128,))
    mean, log_var = model(x[rows])
    loss = criterion(mean, y[rows], log_var.exp())
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 2.0)
    optimizer.step()
    scheduler.step()
    if step % 100 == 99:
        with torch.no_grad():
            mean, log_var = model(x_val)
            val = criterion(mean, y_val, log_var.exp())
            inside = ((mean - y_val).abs() < log_var.mul(0.5).exp()).float().mean()
        print(f"step {step + 1}: loss {loss:.3f}, val {val:.3f}, within one spread {inside:.3f}")
