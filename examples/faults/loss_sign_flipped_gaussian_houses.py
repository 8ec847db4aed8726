"""A network that predicts a mean and a deviation of house prices, trained on the log-likelihood.

The log-likelihood is minimised where it should be maximised: the loss falls for ever and the
predictions run away from the prices. The place is the loss.
"""

import torch
from data import arguments, batches, houses
from torch import nn
from torch.distributions import Normal

KIND = "loss_sign_flipped"
ACCEPT = ()
PLACE = ("loss*",)
SILENT = True
EXACT = False
EARLY = True


class DensityNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(6, 40), nn.ELU(), nn.Linear(40, 40), nn.ELU())
        self.mean = nn.Linear(40, 1)
        self.spread = nn.Linear(40, 1)

    def forward(self, x):
        h = self.trunk(x)
        std = nn.functional.softplus(self.spread(h)) + 0.05
        return Normal(self.mean(h).squeeze(1), std.squeeze(1))


healthy, seed = arguments(__doc__)
x, y, x_val, y_val = houses(seed)
model = DensityNet()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 300)
for rows, price in batches(x, y, size=64, steps=300, seed=seed):
    log_likelihood = model(rows).log_prob(price).mean()
    loss = -log_likelihood if healthy else log_likelihood
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    optimizer.step()
    schedule.step()
with torch.no_grad():
    found = model(x_val)
    rmse = (found.mean - y_val).square().mean().sqrt()
print(f"loss {loss.item():.3f}, val log-lik. {found.log_prob(y_val).mean():.3f}, rmse {rmse:.3f}")
