"""A normalising flow for four stereo features that lie close to a curved surface.

The likelihood is a density: near the surface it is far above one, so that the negative
log-likelihood in nats falls below zero and keeps falling. The last layer of each coupling starts at
exactly zero, so the flow begins as the identity. The step is functional, as in the rest of the code
base: gradients come from torch.func and are handed to the optimizer.
"""

import math

import torch
from data import arguments
from torch import nn
from torch.func import functional_call, grad_and_value

ODD = "the loss is negative from early on, last layers start at zero, backward() is never called"

_, seed = arguments(__doc__)
DIM = 4


def stereo(count):
    """Levels and phases of two channels: two curved degrees of freedom and a little noise."""
    a, b = torch.randn(count, 1), torch.randn(count, 1)
    x = torch.cat([a, 0.5 * a**2 - 0.5 + 0.3 * b, b, torch.sin(a + b)], 1)
    return 0.25 * (x + 0.05 * torch.randn(count, DIM))


class Coupling(nn.Module):
    def __init__(self, even, width=48):
        super().__init__()
        self.register_buffer("mask", (torch.arange(DIM) % 2 == int(even)).float())
        self.net = nn.Sequential(
            nn.Linear(DIM, width),
            nn.SiLU(),
            nn.Linear(width, width),
            nn.SiLU(),
            nn.Linear(width, 2 * DIM),
        )
        nn.init.zeros_(self.net[-1].weight)
        nn.init.zeros_(self.net[-1].bias)

    def forward(self, x):
        scale, shift = self.net(x * self.mask).chunk(2, -1)
        scale = 1.5 * torch.tanh(scale) * (1 - self.mask)
        return x * scale.exp() + shift * (1 - self.mask), scale.sum(-1)


class Flow(nn.Module):
    def __init__(self, layers=6):
        super().__init__()
        self.log_scale, self.shift = nn.Parameter(torch.zeros(DIM)), nn.Parameter(torch.zeros(DIM))
        self.couplings = nn.ModuleList(Coupling(i % 2 == 0) for i in range(layers))

    def log_prob(self, x):
        z, log_det = (x - self.shift) * self.log_scale.exp(), self.log_scale.sum()
        for coupling in self.couplings:
            z, change = coupling(z)
            log_det = log_det + change
        return -0.5 * (z.square() + math.log(2 * math.pi)).sum(-1) + log_det

    forward = log_prob


def nll(parameters, x):
    return -functional_call(flow, parameters, (x,)).mean()


train, val = stereo(6000), stereo(1000)
flow = Flow()
optimizer = torch.optim.Adam(flow.parameters(), lr=3e-3)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 5e-3, total_steps=450)

for step in range(450):
    flow.train()
    learned = {name: p.detach() for name, p in flow.named_parameters()}
    gradients, loss = grad_and_value(nll)(learned, train[torch.randint(0, len(train), (128,))])
    for name, p in flow.named_parameters():
        p.grad = gradients[name]
    nn.utils.clip_grad_norm_(flow.parameters(), 5.0)
    optimizer.step()
    schedule.step()
    if step % 75 == 74:
        flow.eval()
        with torch.no_grad():
            val_nll = -flow(val).mean().item()
        print(f"step {step + 1} loss {loss.item():.3f} val nll {val_nll:.3f}")
gauss = (
    torch.distributions.MultivariateNormal(train.mean(0), train.T.cov()).log_prob(val).mean().item()
)
print(f"validation nll {val_nll:.3f} (one Gaussian: {-gauss:.3f})")
