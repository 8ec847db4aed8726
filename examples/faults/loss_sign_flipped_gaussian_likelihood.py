"""Trains a net that predicts mean and deviation of house prices by minimising the log-likelihood
itself.

The minus sign before log_prob(...).mean() is missing, so the optimizer makes the observed prices as
unlikely as it can. The loss falls without end and the predicted means run away from the targets.
The twin minimises the negative log-likelihood. The place is the loss.
"""

import torch
import torch.nn.functional as F
from data import arguments, houses
from torch import nn
from torch.distributions import Normal

KIND = "loss_sign_flipped"
ACCEPT = ()
PLACE = ("loss*",)
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = houses(seed, n=4000)


class GaussianNet(nn.Module):
    def __init__(self, inputs, hidden=48):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(inputs, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh()
        )
        self.mean = nn.Linear(hidden, 1)
        self.scale = nn.Linear(hidden, 1)

    def forward(self, x):
        h = self.body(x)
        return Normal(self.mean(h).squeeze(1), F.softplus(self.scale(h).squeeze(1)) + 1e-2)


model = GaussianNet(x.shape[1])
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

for epoch in range(14):
    model.train()
    total = 0.0
    for rows in torch.randperm(len(x)).split(64):
        dist = model(x[rows])
        loss = -dist.log_prob(y[rows]).mean() if healthy else dist.log_prob(y[rows]).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows)
    model.eval()
    with torch.no_grad():
        dist = model(x_val)
        rmse = (dist.mean - y_val).square().mean().sqrt()
    print(f"epoch {epoch + 1}: loss {total / len(x):.4f}, val rmse {rmse:.4f}")
