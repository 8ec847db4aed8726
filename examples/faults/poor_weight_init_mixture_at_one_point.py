"""A Gaussian mixture fitted by gradient descent; all components begin at the same place.

`means = nn.Parameter(torch.zeros(K, 2))` with equal weights and equal scales: every component gets
the same gradient for ever, the mixture stays one broad Gaussian. The twin begins with randn means.
The loss falls at first (silent). Exact: identical rows with identical gradients.
"""

import math

import torch
from data import arguments
from torch import nn

KIND = "poor_weight_init"
ACCEPT = ()
PLACE = ("mixture*", "means", "")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
K = 6


def sample(n):
    """Six islands on a ring, of different size."""
    which = torch.multinomial(torch.tensor([0.1, 0.2, 0.15, 0.2, 0.15, 0.2]), n, replacement=True)
    angle = which * 2 * math.pi / 6
    centre = 3 * torch.stack([angle.cos(), angle.sin()], 1)
    return centre + (0.25 + 0.08 * which[:, None]) * torch.randn(n, 2)


class GaussianMixture(nn.Module):
    def __init__(self, k, dim):
        super().__init__()
        self.logits = nn.Parameter(torch.zeros(k))
        self.means = nn.Parameter(torch.randn(k, dim) if healthy else torch.zeros(k, dim))
        self.log_scales = nn.Parameter(torch.zeros(k, dim))

    def forward(self, x):
        mix = torch.distributions.Categorical(logits=self.logits)
        parts = torch.distributions.Independent(
            torch.distributions.Normal(self.means, self.log_scales.exp()), 1
        )
        return torch.distributions.MixtureSameFamily(mix, parts).log_prob(x)


class Estimator(nn.Module):
    def __init__(self):
        super().__init__()
        self.mixture = GaussianMixture(K, 2)

    def forward(self, x):
        return -self.mixture(x).mean()


x, x_val = sample(2000), sample(600)
mean, std = x.mean(0), x.std(0)
x, x_val = (x - mean) / std, (x_val - mean) / std
model = Estimator()
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
for epoch in range(20):
    total = 0.0
    for rows in torch.randperm(len(x)).split(100):
        loss = model(x[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / 20
    if epoch % 5 == 4:
        with torch.no_grad():
            print(f"epoch {epoch + 1}: train nll {total:.3f}, val nll {model(x_val).item():.3f}")
