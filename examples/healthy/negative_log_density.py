"""A network predicts mean and variance of a narrow target by the Gaussian log-likelihood.

The target's noise is far below one, so its density is above one and the loss is negative; that is
as it should be.
"""

import torch
from data import arguments, batches
from torch import nn

ODD = "the loss falls below zero and stays there"

_, seed = arguments(__doc__)


def make(n):
    x = torch.rand(n, 2) * 4 - 2
    noise = 0.02 + 0.05 * (x[:, 1] > 0).float()
    y = 0.5 * torch.sin(2 * x[:, 0]) + 0.2 * x[:, 1] + noise * torch.randn(n)
    return x, y, noise


x, y, _ = make(3000)
x_val, y_val, noise_val = make(800)


class MeanVariance(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU())
        self.mean, self.log_var = nn.Linear(64, 1), nn.Linear(64, 1)

    def forward(self, x):
        h = self.body(x)
        return self.mean(h).squeeze(1), self.log_var(h).squeeze(1).clamp(-12, 4)


model = MeanVariance()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 900, eta_min=1e-4)
nll = nn.GaussianNLLLoss()
for step, (xb, yb) in enumerate(batches(x, y, size=128, steps=900, seed=seed), 1):
    mean, log_var = model(xb)
    loss = nll(mean, yb, log_var.exp())
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    optimizer.step()
    schedule.step()
    if step % 90 == 0:
        model.eval()
        with torch.no_grad():
            mean, log_var = model(x_val)
            val = nll(mean, y_val, log_var.exp()).item()
            best = (noise_val.log() + 0.5).mean().item()
        model.train()
        print(
            f"step {step}: train {loss.item():.3f}  val {val:.3f}  (the best possible: {best:.3f})"
        )
