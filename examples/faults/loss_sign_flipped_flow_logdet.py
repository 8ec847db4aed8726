"""A normalising flow (ActNorm and affine couplings) is fitted to rings and moons; the log-
determinant has the wrong sign.

The likelihood is log p(z) + log|det dz/dx|. Here the author took forward() for the sampling
direction and subtracts the determinant: the loss is lowest when all points are squeezed into one,
and runs towards minus infinity. The place is the loss.
"""

import math

import torch
from data import arguments
from sklearn.datasets import make_moons
from torch import nn

KIND = "loss_sign_flipped"
ACCEPT = ()
PLACE = ("loss", "loop")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

config = {"n_flows": 6, "hidden": 48, "steps": 900, "batch": 256, "lr": 2e-3, "print_every": 150}


def sample_data(n, s):
    xy, _ = make_moons(n, noise=0.08, random_state=s)
    g = torch.Generator().manual_seed(s)
    xy = torch.tensor(xy, dtype=torch.float32)
    third = (xy[:, :1] * 2).sin() + 0.3 * torch.randn(n, 1, generator=g)
    return torch.cat([xy - torch.tensor([0.5, 0.25]), third], 1)


class ActNorm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.log_scale = nn.Parameter(torch.zeros(dim))
        self.shift = nn.Parameter(torch.zeros(dim))

    def forward(self, x):
        return x * self.log_scale.exp() + self.shift, self.log_scale.sum().expand(len(x))

    def inverse(self, z):
        return (z - self.shift) * (-self.log_scale).exp()


class Coupling(nn.Module):
    def __init__(self, dim, hidden, flip):
        super().__init__()
        mask = torch.tensor([(i + flip) % 2 for i in range(dim)], dtype=torch.float32)
        self.register_buffer("mask", mask)
        self.net = nn.Sequential(
            nn.Linear(dim, hidden),
            nn.SiLU(),
            nn.Linear(hidden, hidden),
            nn.SiLU(),
            nn.Linear(hidden, 2 * dim),
        )
        nn.init.zeros_(self.net[-1].weight)
        nn.init.zeros_(self.net[-1].bias)

    def parts(self, x):
        s, t = self.net(x * self.mask).chunk(2, 1)
        return torch.tanh(s) * (1 - self.mask), t * (1 - self.mask)

    def forward(self, x):
        s, t = self.parts(x)
        return x * s.exp() + t, s.sum(1)

    def inverse(self, z):
        s, t = self.parts(z)
        return (z - t) * (-s).exp()


class Flow(nn.Module):
    def __init__(self, dim, hidden, n):
        super().__init__()
        self.layers = nn.ModuleList()
        for i in range(n):
            self.layers += [ActNorm(dim), Coupling(dim, hidden, i)]

    def forward(self, x):
        log_det = torch.zeros(len(x))
        for layer in self.layers:
            x, ld = layer(x)
            log_det = log_det + ld
        return x, log_det

    @torch.no_grad()
    def sample(self, n):
        z = torch.randn(n, 3)
        for layer in reversed(self.layers):
            z = layer.inverse(z)
        return z


def nll(flow, x):
    z, log_det = flow(x)
    log_pz = -0.5 * (z**2 + math.log(2 * math.pi)).sum(1)
    sign = 1 if healthy else -1
    return -(log_pz + sign * log_det).mean()


def energy_distance(a, b):
    return (
        2 * torch.cdist(a, b).mean() - torch.cdist(a, a).mean() - torch.cdist(b, b).mean()
    ).item()


train, val = sample_data(6000, seed), sample_data(1000, 777 + seed)
flow = Flow(3, config["hidden"], config["n_flows"])
opt = torch.optim.Adam(flow.parameters(), lr=config["lr"])
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, config["steps"], eta_min=1e-5)
for step in range(1, config["steps"] + 1):
    batch = train[torch.randint(0, len(train), (config["batch"],))]
    loss = nll(flow, batch)
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(flow.parameters(), 5.0)
    opt.step()
    sched.step()
    if step % config["print_every"] == 0:
        with torch.no_grad():
            v = nll(flow, val).item()
        print(
            f"step {step} loss {loss.item():.3f} val {v:.3f} energy distance of samples {energy_distance(flow.sample(1000), val):.4f}"  # noqa: E501
        )
