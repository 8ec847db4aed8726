"""A GAN that imitates pairs of correlated, skewed sensor readings.

Odd: neither loss falls, the discriminator's hovers about ln 2 * 2 and the fakes are detached in
its step; both is as it should be. What tells is the distance between the real and the generated
distribution (sliced Wasserstein), measured on fresh samples of an averaged generator, and it
falls.
"""

import copy

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

ODD = "A GAN that imitates pairs of correlated, skewed sensor readings"
_, seed = arguments(__doc__)

STEPS, BATCH, Z = 1500, 128, 8


def readings(n, rng):
    load = rng.beta(2, 3, n)
    mode = rng.random(n) < 0.35
    temp = 1.5 * load + np.where(mode, 0.9, -0.3) + rng.normal(0, 0.12, n)
    vibration = np.log(0.3 + load**2 + 0.4 * mode + rng.gamma(2, 0.04, n))
    return np.stack([temp, vibration], 1).astype(np.float32)


rng = np.random.default_rng(seed + 1)
real = torch.from_numpy(readings(6000, rng))
mean, std = real.mean(0), real.std(0)
real = (real - mean) / std
held = (torch.from_numpy(readings(2000, rng)) - mean) / std


def mlp(i, o, width=64):
    return nn.Sequential(
        nn.Linear(i, width),
        nn.LeakyReLU(0.2),
        nn.Linear(width, width),
        nn.LeakyReLU(0.2),
        nn.Linear(width, o),
    )


def sliced_wasserstein(a, b, directions):
    pa, pb = (a @ directions).sort(0).values, (b @ directions).sort(0).values
    return (pa - pb).abs().mean().item()


G, D = mlp(Z, 2), mlp(2, 1)
G_avg = copy.deepcopy(G).requires_grad_(False)
opt_g = torch.optim.Adam(G.parameters(), lr=5e-4, betas=(0.5, 0.9))
opt_d = torch.optim.Adam(D.parameters(), lr=1e-3, betas=(0.5, 0.9))
directions = F.normalize(torch.randn(2, 50), dim=0)

for step in range(1, STEPS + 1):
    x = real[torch.randint(len(real), (BATCH,))].requires_grad_()
    fake = G(torch.randn(BATCH, Z))
    d_real, d_fake = D(x), D(fake.detach())
    loss_d = F.softplus(-d_real).mean() + F.softplus(d_fake).mean()
    (slope,) = torch.autograd.grad(d_real.sum(), x, create_graph=True)
    penalty = slope.pow(2).sum(1).mean()
    opt_d.zero_grad(set_to_none=True)
    (loss_d + 0.15 * penalty).backward()
    opt_d.step()

    loss_g = F.softplus(-D(fake)).mean()
    opt_g.zero_grad(set_to_none=True)
    loss_g.backward()
    opt_g.step()
    with torch.no_grad():
        for a, p in zip(G_avg.parameters(), G.parameters(), strict=False):
            a.lerp_(p, 0.01)
    if step % 300 == 0:
        with torch.no_grad():
            made = G_avg(torch.randn(len(held), Z))
        d = sliced_wasserstein(made, held, directions)
        print(f"step {step} D {loss_d.item():.3f} G {loss_g.item():.3f} distance {d:.4f}")
