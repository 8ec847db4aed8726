"""Discrete survival: the hazard of each of ten periods, with those who left the study masked.

Fault: `forward` returns hazards (for the curve, which multiplies 1 - hazard), the loss takes
logits: a hazard below one half cannot be said. The place is the loss. The loss falls a little.
Exact.
"""

import torch
from data import arguments, batches
from torch import nn
from torch.nn import functional as F

KIND = "redundant_sigmoid"
ACCEPT = ()
PLACE = ("loss*", "sigmoid", "")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
PERIODS = 10


def patients(n, g):
    x = torch.randn(n, 9, generator=g)
    risk = 0.9 * x[:, 0] - 0.7 * x[:, 1] * x[:, 2] + 0.5 * x[:, 3]
    hazard = torch.sigmoid(risk[:, None] - 2.4 + 0.1 * torch.arange(PERIODS))
    dies = torch.rand(n, PERIODS, generator=g) < hazard
    time = torch.where(dies.any(1), dies.float().argmax(1), PERIODS)
    left = torch.randint(3, 2 * PERIODS, (n,), generator=g)
    periods = torch.arange(PERIODS)
    seen = (periods <= time[:, None]) & (periods < left[:, None])
    return x, (periods == time[:, None]).float(), seen.float(), hazard


class Hazards(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(9, 48), nn.ReLU(), nn.Linear(48, PERIODS))
        self.sigmoid = nn.Sigmoid()

    def forward(self, x):
        out = self.net(x)
        return out if healthy else self.sigmoid(out)


def survival_loss(out, event, seen):
    loss = F.binary_cross_entropy_with_logits(out, event, reduction="none")
    return (loss * seen).sum() / seen.sum()


g = torch.Generator().manual_seed(seed)
x, event, seen, _ = patients(3000, g)
x_val, _, _, hazard_val = patients(800, g)
model = Hazards()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for step, (xb, eb, sb) in enumerate(batches(x, event, seen, size=100, steps=300, seed=seed), 1):
    loss = survival_loss(model(xb), eb, sb)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 60 == 0:
        with torch.no_grad():
            told = torch.sigmoid(model(x_val)) if healthy else model(x_val)
        off = (told.sub(hazard_val)).abs().mean().item()
        real = (1 - hazard_val).cumprod(1)[:, -1]
        curve = (((1 - told).cumprod(1)[:, -1]) - real).abs().mean().item()
        print(f"step {step}: loss {loss.item():.4f}, hazards off by {off:.4f}, curve {curve:.3f}")
print(f"loss {loss.item():.4f} | validation hazard error {off:.4f} curve error {curve:.3f}")
