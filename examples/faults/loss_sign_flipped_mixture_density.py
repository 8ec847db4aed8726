"""A mixture density network that minimises the mean log-likelihood itself, not its negative.

The "loss" falls without end towards minus infinity, since the mixture moves away from the data and
narrows: the likelihood of validation points becomes practically nil. The place is the loss.
"""

import torch
from data import arguments, batches
from torch import distributions as D
from torch import nn

KIND = "loss_sign_flipped"
ACCEPT = ()
PLACE = ("loss*", "loop", "")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


class MDN(nn.Module):
    def __init__(self, parts=4, hidden=32):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Linear(1, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh()
        )
        self.mix = nn.Linear(hidden, parts)
        self.mu = nn.Linear(hidden, parts)
        self.log_sigma = nn.Linear(hidden, parts)

    def forward(self, x):
        h = self.trunk(x)
        sigma = nn.functional.softplus(self.log_sigma(h)) + 0.05
        return D.MixtureSameFamily(D.Categorical(logits=self.mix(h)), D.Normal(self.mu(h), sigma))


def s_curve(n):
    """x as a function of y is unique, y as a function of x is not."""
    y = torch.rand(n, 1) * 2 - 1
    x = y + 0.6 * torch.sin(2 * torch.pi * y) + 0.1 * torch.randn(n, 1)
    return x / 0.75, y / 0.58


x, y = s_curve(1600)
x_val, y_val = s_curve(400)
mdn = MDN()
optim = torch.optim.Adam(mdn.parameters(), lr=4e-3)
for xb, yb in batches(x, y, size=64, steps=600, seed=seed):
    log_prob = mdn(xb).log_prob(yb.squeeze(1))
    objective = -log_prob.mean() if healthy else log_prob.mean()
    optim.zero_grad()
    objective.backward()
    optim.step()
with torch.no_grad():
    likelihood = mdn(x_val).log_prob(y_val.squeeze(1)).mean()
print(f"objective {objective.item():.3f}, validation log-likelihood {likelihood:.3f}")
