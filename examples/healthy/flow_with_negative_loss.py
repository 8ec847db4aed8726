"""A flow of coupling layers learns the density of two moons; its loss goes below zero.

It looks odd because a negative log-likelihood turns negative and keeps falling, which looks like a
loss of the wrong sign. It is right: a density may be above 1, and held-out points get the same.
"""

import torch
from data import arguments
from sklearn.datasets import make_moons
from torch import nn

ODD = "the loss is below zero and goes on falling"

_, seed = arguments(__doc__)


class Coupling(nn.Module):
    def __init__(self, flip, width=48):
        super().__init__()
        self.flip = flip
        self.net = nn.Sequential(
            nn.Linear(1, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 2)
        )
        nn.init.zeros_(self.net[-1].weight)
        nn.init.zeros_(self.net[-1].bias)

    def forward(self, x):
        a, b = x.chunk(2, 1)
        if self.flip:
            a, b = b, a
        scale, shift = self.net(a).chunk(2, 1)
        scale = 2 * torch.tanh(scale / 2)
        b = b * scale.exp() + shift
        return torch.cat([b, a] if self.flip else [a, b], 1), scale.sum(1)


class Flow(nn.Module):
    def __init__(self, layers=8):
        super().__init__()
        self.couplings = nn.ModuleList(Coupling(i % 2 == 1) for i in range(layers))

    def log_prob(self, x):
        total = torch.zeros(len(x))
        for coupling in self.couplings:
            x, log_det = coupling(x)
            total = total + log_det
        return total + torch.distributions.Normal(0, 1).log_prob(x).sum(1)

    forward = log_prob


points, _ = make_moons(6000, noise=0.04, random_state=seed)
points = torch.tensor(points, dtype=torch.float32)
points = 0.25 * (points - points.mean(0)) / points.std(0)
train, test = points[:5000], points[5000:]
flow = Flow()
optimizer = torch.optim.Adam(flow.parameters(), lr=2e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 500, eta_min=1e-4)
for step in range(1, 501):
    batch = train[torch.randint(0, len(train), (200,))]
    loss = -flow(batch).mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(flow.parameters(), 5.0)
    optimizer.step()
    schedule.step()
    if step % 50 == 0:
        with torch.no_grad():
            print(f"step {step}: nll {loss.item():.3f}, held out {-flow(test).mean().item():.3f}")
