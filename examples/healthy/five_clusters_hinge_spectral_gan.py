"""A GAN with the hinge loss and spectral normalisation draws points from five clusters of unequal
weight.

What looks odd: neither loss falls for long, the generator's goes below zero now and then, and the
critic is cleared only before its own step, so that the generator's pass leaves gradients in it;
Adam has a first beta of zero, and the points are judged by a copy that no optimizer knows.
"""

import copy
from itertools import pairwise

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.nn.utils.parametrizations import spectral_norm

ODD = "losses that do not fall, one below zero; gradients left in the critic; a first beta of zero"

_, seed = arguments(__doc__)
CENTRES = torch.tensor([[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0], [0.0, 0.0]])
WEIGHTS = torch.tensor([3.0, 2.0, 2.0, 3.0, 1.5])
SPREAD, NOISE = 0.1, 4


def sample(n):
    which = torch.multinomial(WEIGHTS, n, replacement=True)
    return CENTRES[which] + SPREAD * torch.randn(n, 2)


def critic(width=64):
    sizes = [2, width, width, 1]
    layers = []
    for a, b in pairwise(sizes):
        layers += [spectral_norm(nn.Linear(a, b)), nn.LeakyReLU(0.2)]
    return nn.Sequential(*layers[:-1])


generator = nn.Sequential(
    nn.Linear(NOISE, 96), nn.ReLU(), nn.Linear(96, 96), nn.ReLU(), nn.Linear(96, 2)
)
smooth = copy.deepcopy(generator).requires_grad_(False)
judge = critic()
step_g = torch.optim.Adam(generator.parameters(), lr=3e-3, betas=(0.0, 0.9))
step_d = torch.optim.Adam(judge.parameters(), lr=4e-3, betas=(0.0, 0.9))
SHARP = 20.0  # the critic sees the plane enlarged


@torch.no_grad()
def quality(n=2000):
    points = smooth(torch.randn(n, NOISE))
    distance, which = torch.cdist(points, CENTRES).min(1)
    good = distance < 3.5 * SPREAD
    modes = (torch.bincount(which[good], minlength=5) > 0.05 * n).sum().item()
    return good.float().mean().item(), modes


for step in range(1, 1001):
    fake, real = generator(torch.randn(128, NOISE)).detach(), sample(128)
    loss_d = F.relu(1 - judge(SHARP * real)).mean() + F.relu(1 + judge(SHARP * fake)).mean()
    step_d.zero_grad()
    loss_d.backward()
    step_d.step()
    loss_g = -judge(SHARP * generator(torch.randn(128, NOISE))).mean()
    step_g.zero_grad()
    loss_g.backward()
    step_g.step()
    with torch.no_grad():
        for slow, now in zip(smooth.parameters(), generator.parameters(), strict=True):
            slow.lerp_(now, 0.02)
    if step % 100 == 0:
        near, modes = quality()
        print(
            f"step {step} loss_d {loss_d.item():.3f} loss_g {loss_g.item():.3f} "
            f"near a centre {near:.3f} modes {modes}/5"
        )
