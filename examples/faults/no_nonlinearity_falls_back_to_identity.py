"""A mixture density network for the angles of a robot's arm; the activation's name is not in the
table.

The config says "swish", the table of activations knows "silu", and the look-up falls back on
Identity. The trunk is three linear layers in a row, that is one. The mixture's heads hide it: the
loss falls, to the fit of a linear map. The place is the trunk. The twin's config says "silu".
"""

import math
from dataclasses import dataclass

import torch
from data import arguments
from torch import nn

KIND = "no_nonlinearity"
ACCEPT = ("low_capacity",)
PLACE = ("trunk", "trunk.0", "trunk.2", "trunk.4", "trunk.1", "trunk.3", "trunk.5")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
ACTIVATIONS = {"relu": nn.ReLU, "gelu": nn.GELU, "silu": nn.SiLU, "tanh": nn.Tanh}


@dataclass(frozen=True)
class Config:
    activation: str = "silu" if healthy else "swish"
    widths: tuple = (2, 48, 48, 48)
    components: int = 4
    lr: float = 4e-3
    steps: int = 800


class Mixture(nn.Module):
    """Weights, means and deviations of Gaussians over the two angles."""

    def __init__(self, cfg):
        super().__init__()
        self.k = cfg.components
        layers = []
        for wide, narrow in zip(cfg.widths, cfg.widths[1:], strict=False):
            layers += [nn.Linear(wide, narrow), ACTIVATIONS.get(cfg.activation, nn.Identity)()]
        self.trunk = nn.Sequential(*layers)
        self.heads = nn.Linear(cfg.widths[-1], 5 * self.k)

    def forward(self, x):
        weight, mean, log_std = self.heads(self.trunk(x)).split(
            [self.k, 2 * self.k, 2 * self.k], -1
        )
        shape = (-1, self.k, 2)
        return weight.log_softmax(-1), mean.view(shape), log_std.view(shape).clamp(-3.5, 2)


def negative_log_likelihood(mixture, angles):
    log_weight, mean, log_std = mixture
    z = (angles[:, None] - mean) * torch.exp(-log_std)
    log_p = (-0.5 * z**2 - log_std - 0.5 * math.log(2 * math.pi)).sum(-1)
    return -torch.logsumexp(log_weight + log_p, -1).mean()


def arm(count):
    """Where a hand is, and the angles of shoulder and elbow (up or down) that brought it there."""
    shoulder = 0.3 + 1.6 * torch.rand(count)
    elbow = (0.5 + 1.9 * torch.rand(count)) * torch.where(torch.rand(count) < 0.5, -1.0, 1.0)
    first, second = shoulder, shoulder + elbow
    hand = torch.stack([first.cos() + 0.8 * second.cos(), first.sin() + 0.8 * second.sin()], -1)
    return hand + 0.02 * torch.randn(count, 2), torch.stack(
        [shoulder, elbow], -1
    ) + 0.05 * torch.randn(count, 2)


cfg = Config()
(x, y), (x_val, y_val) = arm(3000), arm(800)
center, spread = x.mean(0), x.std(0)
x, x_val = (x - center) / spread, (x_val - center) / spread
model = Mixture(cfg)
optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, cfg.steps)

for step in range(cfg.steps):
    model.train()
    rows = torch.randint(0, len(x), (64,))
    loss = negative_log_likelihood(model(x[rows]), y[rows])
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    optimizer.step()
    schedule.step()
    if step % 100 == 99:
        model.eval()
        with torch.no_grad():
            val = negative_log_likelihood(model(x_val), y_val).item()
        print(f"step {step + 1} loss {loss.item():.3f} val nll {val:.3f}")
print(f"validation negative log-likelihood {val:.3f}")
