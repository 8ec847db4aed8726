"""Vibrations of bearings by a diagonal state-space layer, whose decay rates lost their minus.

S4D keeps log(-A) as the parameter, so that A = -exp(log_a). Here A is +exp(log_a): the state grows
by a factor each step in place of fading, and the gradient with it. The place is the state-space
layers. The twin has the minus.
"""

import math

import torch
from data import arguments
from torch import nn

KIND = "exploding_gradient"
ACCEPT = ("poor_weight_init",)
PLACE = ("ssm*",)
SILENT = False
EXACT = False
EARLY = True

LENGTH = 56


class StateSpace(nn.Module):
    """y = sum of a few fading memories of each channel, as a recurrence over time."""

    def __init__(self, channels, states, sign):
        super().__init__()
        self.sign = sign
        self.log_a = nn.Parameter(torch.log(1.0 + torch.arange(states)).repeat(channels, 1))
        span = math.log(0.1) - math.log(0.01)
        self.log_dt = nn.Parameter(math.log(0.01) + span * torch.rand(channels, 1))
        self.c = nn.Parameter(torch.randn(channels, states) / states**0.5)
        self.d = nn.Parameter(torch.ones(channels))

    def forward(self, u):
        dt = self.log_dt.exp()
        a = self.sign * self.log_a.exp()
        keep = torch.exp(dt * a)
        take = (keep - 1) / a
        h = u.new_zeros(len(u), *keep.shape)
        out = []
        for t in range(u.shape[1]):
            h = keep * h + take * u[:, t, :, None]
            out.append((h * self.c).sum(-1))
        return torch.stack(out, 1) + self.d * u


class BearingNet(nn.Module):
    def __init__(self, sign, width=16, states=5):
        super().__init__()
        self.embed = nn.Linear(1, width)
        self.ssm1 = StateSpace(width, states, sign)
        self.mix1 = nn.Linear(width, width)
        self.ssm2 = StateSpace(width, states, sign)
        self.mix2 = nn.Linear(width, width)
        self.head = nn.Linear(width, 3)

    def forward(self, x):
        h = self.embed(x)
        h = h + self.mix1(nn.functional.gelu(self.ssm1(h)))
        h = h + self.mix2(nn.functional.gelu(self.ssm2(h)))
        return self.head(h.mean(1))


def vibrations(n):
    """0: sound, 1: slow knocks (outer ring), 2: fast knocks that come and go (inner ring)."""
    label = torch.randint(0, 3, (n,))
    t = torch.arange(LENGTH)
    period = torch.tensor([1000.0, 16.0, 7.0])[label] * (1 + 0.1 * torch.rand(n))
    phase = (t + period[:, None] * torch.rand(n, 1)) % period[:, None]
    knocks = 3.0 * torch.exp(-phase / 1.2) * (label > 0)[:, None]
    swell = 0.6 + 0.4 * torch.sin(t / 10 + 6.28 * torch.rand(n, 1))
    knocks = torch.where((label == 2)[:, None], knocks * swell, knocks)
    x = knocks + 0.35 * torch.randn(n, LENGTH)
    return x.unsqueeze(-1), label


healthy, seed = arguments(__doc__)
x, y = vibrations(1400)
x_test, y_test = vibrations(400)
net = BearingNet(sign=-1 if healthy else 1)
optimizer = torch.optim.AdamW(net.parameters(), lr=5e-3)
for epoch in range(3):
    for rows in torch.randperm(len(x)).split(40):
        loss = nn.functional.cross_entropy(net(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        accuracy = (net(x_test).argmax(1) == y_test).float().mean()
    print(f"epoch {epoch}: loss {loss.item():.3f}, accuracy {accuracy:.3f}")
