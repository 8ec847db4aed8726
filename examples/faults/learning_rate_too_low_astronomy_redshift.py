"""Photometric redshifts from five magnitudes; the steps are a thousand times too small.

The rate was copied from a script that fine-tunes a large pretrained network, where 2e-6 is common.
Here everything starts from scratch and the run ends long before the weights have got anywhere.
The place is the optimizer. The twin starts at 2e-3.
"""

import math

import torch
from data import arguments, standardise
from torch import nn
from torch.optim.lr_scheduler import OneCycleLR

KIND = "learning_rate_too_low"
ACCEPT = ()
PLACE = ("optimizer", "loop")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


def catalogue(n: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Magnitudes in u, g, r, i, z and the redshift of galaxies of three spectral types."""
    z = torch.distributions.Gamma(4.0, 7.0).sample((n,))
    kind = torch.randint(0, 3, (n,)).float() / 2
    waves = torch.tensor([0.354, 0.475, 0.622, 0.763, 0.905])
    rest = waves / (1 + z.unsqueeze(1))
    break_depth = 0.6 + 1.8 * kind.unsqueeze(1)
    dim = break_depth * torch.sigmoid((0.40 - rest) / 0.03) - 0.8 * rest
    magnitude = 20 + 5 * torch.log10(z + 0.05).unsqueeze(1) + dim
    magnitude = magnitude + 0.4 * torch.randn(n, 1) + 0.04 * torch.randn(n, 5)
    return magnitude, z


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


class PhotoZ(nn.Module):
    """A Gaussian for log(1 + z)."""

    def __init__(self, width=32, depth=2):
        super().__init__()
        self.inlet = nn.Linear(9, width)
        self.blocks = nn.Sequential(*[Block(width) for _ in range(depth)])
        self.outlet = nn.Linear(width, 2)

    def forward(self, magnitude_and_colours):
        mean, log_sigma = self.outlet(self.blocks(self.inlet(magnitude_and_colours))).unbind(1)
        return mean, log_sigma.clamp(-5, 2)


def negative_log_likelihood(prediction, target):
    mean, log_sigma = prediction
    return (log_sigma + 0.5 * ((target - mean) / log_sigma.exp()) ** 2).mean()


def with_colours(m):
    return torch.cat([m, m[:, :-1] - m[:, 1:]], dim=1)


m, z = catalogue(4000)
m_val, z_val = catalogue(1000)
x, x_val = standardise(with_colours(m), with_colours(m_val))
t, t_val = standardise(torch.log1p(z), torch.log1p(z_val))

peak = 2e-3 if healthy else 2e-6
epochs, size = 10, 100
net = PhotoZ()
optimizer = torch.optim.AdamW(net.parameters(), lr=peak, weight_decay=1e-3)
schedule = OneCycleLR(optimizer, max_lr=peak, total_steps=epochs * math.ceil(len(x) / size))

for epoch in range(epochs):
    net.train()
    for rows in torch.randperm(len(x)).split(size):
        loss = negative_log_likelihood(net(x[rows]), t[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    net.eval()
    with torch.no_grad():
        mean, log_sigma = net(x_val)
        nll = negative_log_likelihood((mean, log_sigma), t_val)
        scatter = 1.48 * (mean - t_val).abs().median() * torch.log1p(z).std()
    print(f"epoch {epoch + 1:2d}  val nll {nll:+.4f}  sigma_mad {scatter:.4f}")
