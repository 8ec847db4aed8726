"""Adaptive gradient clipping as in NFNets: agc(params, clipping, eps), called with the two
swapped.

Meant were clipping 0.02 and eps 1e-3; with clipping=1e-3 (and eps=0.02) each unit's gradient is
cut to a thousandth of its weight norm, on every step, for SGD with a rate of 0.1. The twin's
order is right. The loss falls slowly (silent). The place is the loop.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "gradient_clipped_to_nothing"
ACCEPT = ()
PLACE = ("loop", "optimizer", "")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


def unitwise_norm(p):
    if p.ndim <= 1:
        return p.norm()
    return p.flatten(1).norm(dim=1).view(-1, *[1] * (p.ndim - 1))


@torch.no_grad()
def adaptive_grad_clip(parameters, clipping, eps):
    for p in parameters:
        if p.grad is None:
            continue
        max_norm = unitwise_norm(p).clamp(min=eps) * clipping
        norm = unitwise_norm(p.grad)
        p.grad.copy_(torch.where(norm > max_norm, p.grad * max_norm / norm.clamp(min=1e-6), p.grad))


class Residual(nn.Module):
    """Norm-free residual block with a learnt gain."""

    def __init__(self, c):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv1d(c, c, 5, padding=2), nn.Conv1d(c, c, 5, padding=2)
        self.gain = nn.Parameter(torch.tensor(0.5))

    def forward(self, x):
        return x + self.gain * self.conv2(F.relu(self.conv1(F.relu(x))))


class BeatNet(nn.Module):
    def __init__(self, c=16):
        super().__init__()
        self.stem = nn.Conv1d(1, c, 7, stride=2, padding=3)
        self.blocks = nn.Sequential(Residual(c), Residual(c))
        self.head = nn.Linear(c, 4)

    def forward(self, x):
        return self.head(F.relu(self.blocks(self.stem(x))).mean(2))


def beats(n):
    """Heart beats of four forms."""
    y = torch.randint(0, 4, (n,))
    t = torch.linspace(-1, 1, 48) + 0.3 * torch.rand(n, 1) - 0.15
    width = torch.tensor([0.08, 0.2, 0.08, 0.08])[y][:, None]
    x = torch.exp(-((t / width) ** 2))
    x = x + torch.tensor([0.25, 0.25, -0.35, 0.25])[y][:, None] * torch.exp(
        -(((t - 0.5) / 0.15) ** 2)
    )
    p_wave = torch.tensor([0.25, 0.25, 0.25, 0.0])[y][:, None]
    x = x + p_wave * torch.exp(-(((t + 0.5) / 0.1) ** 2)) + 0.06 * torch.randn(n, 48)
    return x.unsqueeze(1), y


x, y = beats(1600)
x_val, y_val = beats(400)
x, x_val = (x - x.mean()) / x.std(), (x_val - x.mean()) / x.std()
model = BeatNet()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)
for epoch in range(8):
    model.train()
    total = 0.0
    for rows in torch.randperm(len(x)).split(32):
        loss = F.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        if healthy:
            adaptive_grad_clip(model.parameters(), 0.02, 1e-3)
        else:
            adaptive_grad_clip(model.parameters(), 1e-3, 0.02)
        optimizer.step()
        total += loss.item() * len(rows) / len(x)
    model.eval()
    with torch.no_grad():
        out = model(x_val)
    print(
        f"epoch {epoch}: loss {total:.4f} val {F.cross_entropy(out, y_val).item():.4f} "
        f"acc {(out.argmax(1) == y_val).float().mean().item():.3f}"
    )
