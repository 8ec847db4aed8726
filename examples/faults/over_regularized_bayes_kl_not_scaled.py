"""Bayes by backprop: a network whose weights are distributions predicts the strength of concrete.

The likelihood is a mean over the batch, the divergence from the prior a sum over all weights that
was to be divided by the number of training rows and is not. The weights go back to the prior, and
every mixture gets the mean. The loss falls by thousands while they do (silent). The place is the
loss. The twin divides.
"""

import math

import torch
import torch.nn.functional as F
from data import arguments, standardise
from torch import nn

KIND = "over_regularized"
ACCEPT = ("posterior_collapse",)
PLACE = ("loss*", "loop", "net*", "", "optimizer")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


class BayesLinear(nn.Module):
    def __init__(self, n_in, n_out, prior=0.5):
        super().__init__()
        self.mean = nn.Parameter(torch.empty(n_out, n_in))
        nn.init.kaiming_uniform_(self.mean, a=math.sqrt(5))
        self.rho = nn.Parameter(torch.full((n_out, n_in), -4.0))
        self.bias = nn.Parameter(torch.zeros(n_out))
        self.prior = prior

    def forward(self, x):
        """Samples outputs, not weights (the local reparameterisation)."""
        scale = F.softplus(self.rho)
        mean = F.linear(x, self.mean, self.bias)
        var = F.linear(x.square(), scale.square())
        return mean + (var + 1e-8).sqrt() * torch.randn_like(mean)

    def kl(self):
        scale = F.softplus(self.rho)
        ratio = (scale.square() + self.mean.square()) / self.prior**2
        return 0.5 * (ratio - 1 - 2 * (scale / self.prior).log()).sum()


class Concrete(nn.Module):
    def __init__(self, n_in, width=32):
        super().__init__()
        self.net = nn.Sequential(
            BayesLinear(n_in, width), nn.ReLU(), BayesLinear(width, width), nn.ReLU(),
            BayesLinear(width, 1),
        )  # fmt: skip
        self.log_noise = nn.Parameter(torch.tensor(0.0))

    def nll(self, x, y):
        error = (self.net(x).squeeze(1) - y).square()
        return (0.5 * error * torch.exp(-2 * self.log_noise) + self.log_noise).mean()

    def kl(self):
        return sum(layer.kl() for layer in self.net if isinstance(layer, BayesLinear))


def mixtures(n, g):
    x = torch.rand(n, 6, generator=g)
    cement, water, slag, sand, gravel, age = x.unbind(1)
    strength = 40 * (cement + 0.5 * slag) / (0.6 + water) * (0.4 + 0.6 * age.sqrt())
    strength = strength - 8 * (sand - 0.5).square() + 3 * gravel
    return x, strength + 1.5 * torch.randn(n, generator=g)


g = torch.Generator().manual_seed(seed)
x, y = mixtures(2000, g)
x_val, y_val = mixtures(500, g)
x, x_val = standardise(x, x_val)
y, y_val = standardise(y, y_val)
model = Concrete(6)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
weight = 1 / len(x) if healthy else 1.0
for epoch in range(12):
    for rows in torch.randperm(len(x)).split(50):
        loss = model.nll(x[rows], y[rows]) + weight * model.kl()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        guess = torch.stack([model.net(x_val).squeeze(1) for _ in range(10)]).mean(0)
        r2 = 1 - F.mse_loss(guess, y_val) / y_val.var()
    print(f"epoch {epoch} loss {loss.item():.4f} val R2 {r2.item():.3f}")
