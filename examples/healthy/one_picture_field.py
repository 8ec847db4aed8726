"""A coordinate network is fitted to one picture of a nebula.

Looks odd: there is one batch, the same in every step, no shuffling, the sines' first layer has a
large scale, and the rate goes up at once. It is sound, since the network is the picture: it is
judged at the points between the pixels, which it has not seen.
"""

import math

import torch
from data import arguments
from torch import nn

ODD = "A coordinate network is fitted to one picture of a nebula"

_, seed = arguments(__doc__)

RES = 40


def nebula(xy):
    """A smooth function of the plane, three channels."""
    x, y = xy[..., 0], xy[..., 1]
    r = (x**2 + y**2).sqrt()
    swirl = torch.sin(5 * r + 3 * torch.atan2(y, x + 1e-9))
    cloud = torch.exp(-2.5 * r**2) * (0.7 + 0.3 * swirl)
    star = sum(
        torch.exp(-((x - a) ** 2 + (y - b) ** 2) / 0.006)
        for a, b in ((0.4, 0.3), (-0.5, 0.1), (0.1, -0.6))
    )
    filament = torch.exp(-((y - 0.3 * torch.sin(4 * x)) ** 2) / 0.02) * 0.5
    return torch.stack(
        [cloud + star, 0.6 * cloud + filament + star, 0.4 * filament + 0.8 * star + 0.2 * cloud], -1
    )


class Sine(nn.Module):
    def __init__(self, n_in, n_out, w0, first=False):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)
        self.w0 = w0
        bound = 1 / n_in if first else math.sqrt(6 / n_in) / w0
        nn.init.uniform_(self.linear.weight, -bound, bound)

    def forward(self, x):
        return torch.sin(self.w0 * self.linear(x))


class Siren(nn.Sequential):
    def __init__(self, hidden=48):
        super().__init__(
            Sine(2, hidden, 10.0, first=True),
            Sine(hidden, hidden, 10.0),
            Sine(hidden, hidden, 10.0),
            nn.Linear(hidden, 3),
        )


lin = torch.linspace(-1, 1, RES)
grid = torch.stack(torch.meshgrid(lin, lin, indexing="ij"), -1).view(-1, 2)
picture = nebula(grid) + 0.02 * torch.randn(RES * RES, 3)
between = (grid + (lin[1] - lin[0]) / 2).clamp(-1, 1)
truth = nebula(between)
centre = picture.mean(0)

field = Siren()
optimizer = torch.optim.Adam(field.parameters(), lr=1e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 450, eta_min=1e-5)
for step in range(1, 451):
    loss = (field(grid) - (picture - centre)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    if step % 75 == 0:
        with torch.no_grad():
            err = (field(between) + centre - truth).square().mean()
        print(
            f"{step:4d} PSNR {-10 * math.log10(loss.item()):.2f}  between the pixels {-10 * torch.log10(err).item():.2f} dB"  # noqa: E501
        )
