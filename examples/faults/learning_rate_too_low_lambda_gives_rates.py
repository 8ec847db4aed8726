"""Solubility of molecules as sets of fragments: the schedule's lambda gives the rate, not a factor.

`LambdaLR` multiplies the optimizer's rate by what the function returns. The function was kept from
a home-made loop and returns the rate itself, warm-up and cosine included, so that the steps are a
thousandth of what was meant: 1e-3 times 1e-3. The place is the optimizer / the schedule. The twin's
function returns the share of the peak.
"""

import math

import torch
from data import arguments
from torch import nn

KIND = "learning_rate_too_low"
ACCEPT = ("schedule_collapsed",)
PLACE = ("optimizer",)
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
FRAGMENTS, LONGEST, STEPS, PEAK = 24, 12, 700, 3e-3


def solubilities(n: int):
    g = torch.Generator().manual_seed(270 + seed)
    size = torch.randint(4, LONGEST + 1, (n,), generator=g)
    parts = torch.randint(1, FRAGMENTS, (n, LONGEST), generator=g)
    mask = (torch.arange(LONGEST) < size[:, None]).float()
    polar = torch.randn(FRAGMENTS, generator=g)
    bulk = torch.rand(FRAGMENTS, generator=g)
    polarity, mass = (polar[parts] * mask).sum(1), (bulk[parts] * mask).sum(1)
    rings = ((parts < 5) * mask).sum(1)
    y = (
        0.7 * polarity
        - 0.4 * mass
        - 0.5 * (rings - 2).clamp(min=0)
        + 0.2 * torch.randn(n, generator=g)
    )
    return (parts * mask).long(), mask, y


class DeepSet(nn.Module):
    def __init__(self, width: int = 48):
        super().__init__()
        self.fragment = nn.Embedding(FRAGMENTS, width, padding_idx=0)
        self.phi = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))
        self.rho = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, parts, mask):
        each = self.phi(self.fragment(parts)) * mask.unsqueeze(2)
        return self.rho(each.sum(1) / math.sqrt(LONGEST)).squeeze(1)


def warm_cosine(step: int, warm: int = 40) -> float:
    share = min((step + 1) / warm, 0.5 * (1 + math.cos(math.pi * step / STEPS)))
    return share if healthy else PEAK * share


parts, mask, y = solubilities(4000)
fit, held = slice(0, 3200), slice(3200, None)
y = (y - y[fit].mean()) / y[fit].std()
model = DeepSet()
optimizer = torch.optim.Adam(model.parameters(), lr=PEAK)
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, warm_cosine)


def endless(size: int = 64):
    while True:
        yield from torch.randperm(3200).split(size)


stream = endless()
for step in range(STEPS):
    model.train()
    rows = next(stream)
    loss = nn.functional.mse_loss(model(parts[rows], mask[rows]), y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    if step % 140 == 139:
        model.eval()
        with torch.no_grad():
            val = nn.functional.mse_loss(model(parts[held], mask[held]), y[held]).item()
        print(f"step {step + 1}: train {loss.item():.4f}, validation {val:.4f}")
print(f"validation R2 {1 - val / y[held].var().item():.4f}")
