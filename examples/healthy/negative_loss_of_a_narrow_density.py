"""A mixture density net for a narrow, two-valued relation: the log-density is above zero, so
that the loss is negative and goes on falling; gradient clipping works at each step.
"""

import math

import torch
from data import arguments
from torch import nn

ODD = "the loss is negative and falls below zero, gradients are clipped at nearly each step"

healthy, seed = arguments(__doc__)


def draw(n):
    x = torch.rand(n, 1) * 2 - 1
    branch = (torch.rand(n, 1) < 0.5).float() * 2 - 1
    return x, branch * (0.3 + 0.2 * torch.sin(3 * x)) + 0.02 * torch.randn(n, 1)


class MixtureNet(nn.Module):
    def __init__(self, parts=3):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(1, 40), nn.Tanh(), nn.Linear(40, 40), nn.Tanh())
        self.weight, self.mean = nn.Linear(40, parts), nn.Linear(40, parts)
        self.log_std = nn.Linear(40, parts)

    def nll(self, x, y):
        h = self.body(x)
        log_std = self.log_std(h).clamp(-5, 2)
        z = (y - self.mean(h)) / log_std.exp()
        each = self.weight(h).log_softmax(1) - 0.5 * z**2 - log_std - 0.5 * math.log(2 * math.pi)
        return -each.logsumexp(1).mean()


net = MixtureNet()
optimizer = torch.optim.Adam(net.parameters(), lr=4e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 500)
train, val = draw(2000), draw(500)
for step in range(1, 501):
    rows = torch.randint(0, 2000, (128,))
    loss = net.nll(train[0][rows], train[1][rows])
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 0.3)
    optimizer.step()
    schedule.step()
    if step % 100 == 0:
        with torch.no_grad():
            value = net.nll(*val).item()
        print(f"step {step}: loss {loss.item():.4f}, validation NLL {value:.4f}")
print(f"loss {loss.item():.4f} | validation NLL {value:.4f}")
