"""A normalising flow learns the density of four quantities that nearly determine each other: its
loss is a negative log-density and goes below zero.
"""

import torch
from data import arguments, standardise
from torch import nn

ODD = "the loss (a negative log-likelihood of a density) falls below zero and keeps falling"

_, seed = arguments(__doc__)


class Coupling(nn.Module):
    def __init__(self, flip):
        super().__init__()
        self.flip = flip
        self.net = nn.Sequential(
            nn.Linear(2, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh(), nn.Linear(48, 4)
        )
        nn.init.zeros_(self.net[-1].weight)
        nn.init.zeros_(self.net[-1].bias)

    def forward(self, z):
        a, b = z[:, :2], z[:, 2:]
        if self.flip:
            a, b = b, a
        shift, scale = self.net(a).chunk(2, 1)
        scale = 2 * torch.tanh(scale / 2)
        b = (b - shift) * torch.exp(scale)
        return torch.cat([b, a] if self.flip else [a, b], 1), scale.sum(1)


class Flow(nn.Module):
    def __init__(self, depth=6):
        super().__init__()
        self.couplings = nn.ModuleList(Coupling(i % 2 == 1) for i in range(depth))

    def log_density(self, x):
        log_det = 0.0
        for coupling in self.couplings:
            x, step = coupling(x)
            x, log_det = x[:, [1, 2, 3, 0]], log_det + step
        return -0.5 * (x**2).sum(1) - 3.6758 + log_det

    forward = log_density


def sample(n, state):
    """Speed, torque, current and heat of a motor, by one throttle."""
    r = torch.Generator().manual_seed(state)
    u = torch.randn(n, generator=r)
    noise = 0.04 * torch.randn(n, 4, generator=r)
    return torch.stack([u, u + 0.3 * u**2, torch.tanh(1.5 * u), torch.sin(u) - u], 1) + noise


x, x_val = standardise(sample(3000, seed), sample(1000, 100 + seed))
flow = Flow()
optimizer = torch.optim.Adam(flow.parameters(), lr=2e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 500)
for step in range(1, 501):
    rows = torch.randint(0, len(x), (128,))
    loss = -flow(x[rows]).mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(flow.parameters(), 5.0)
    optimizer.step()
    scheduler.step()
    if step % 100 == 0:
        flow.eval()
        with torch.no_grad():
            held_out = -flow(x_val).mean().item()
        flow.train()
        print(
            f"step {step}: nll {loss.item():.3f}, held-out nll {held_out:.3f} (independent: 5.68)"
        )
