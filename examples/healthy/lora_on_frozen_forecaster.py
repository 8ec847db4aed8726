"""A net trained on many stores is adapted to a new one by LoRA: the base is frozen, and B starts at
zero.
"""

import copy

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

ODD = (
    "nine of ten parameters are frozen, half of the adapters start at exactly zero, and the other "
    "half has a gradient of exactly zero in the first step"
)

_, seed = arguments(__doc__)
g = torch.Generator().manual_seed(seed)


class LoRA(nn.Module):
    def __init__(self, base, rank=4, alpha=8):
        super().__init__()
        self.base, self.scale = base, alpha / rank
        self.base.requires_grad_(False)
        self.A = nn.Parameter(torch.randn(rank, base.in_features) / base.in_features**0.5)
        self.B = nn.Parameter(torch.zeros(base.out_features, rank))

    def forward(self, x):
        return self.base(x) + self.scale * F.linear(F.linear(x, self.A), self.B)


def sales(n, shift):
    """28 days before, a week after; `shift` moves the days of the week and the answer to the
    trend.
    """
    t = torch.arange(35.0)
    level = torch.randn(n, 1, generator=g)
    trend = 0.03 * torch.randn(n, 1, generator=g)
    week = torch.sin(2 * torch.pi * (t + shift) / 7) + 0.5 * torch.cos(4 * torch.pi * t / 7)
    bend = (t - 27).clamp(min=0) * (-0.15 * shift) * torch.tanh(level)
    y = level + trend * t + week + bend + 0.15 * torch.randn(n, 35, generator=g)
    return y[:, :28], y[:, 28:]


def fit(model, x, y, steps, lr):
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=lr)
    model.train()
    for _ in range(steps):
        rows = torch.randint(0, len(x), (64,), generator=g)
        loss = F.mse_loss(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@torch.no_grad()
def error(model, x, y):
    model.eval()
    return F.mse_loss(model(x), y).item()


base = nn.Sequential(
    nn.Linear(28, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 7)
)
fit(base, *sales(4000, 0.0), steps=250, lr=2e-3)
x, y = sales(300, 1.5)
x_val, y_val = sales(500, 1.5)
print(f"base alone on the new store: {error(base, x_val, y_val):.3f}")

model = copy.deepcopy(base)
for index in (0, 2, 4):
    model[index] = LoRA(model[index])
fit(model, x, y, steps=250, lr=3e-3)
count = sum(p.numel() for p in model.parameters() if p.requires_grad)
total = sum(p.numel() for p in model.parameters())
print(f"with LoRA ({count} of {total} trained): {error(model, x_val, y_val):.3f}")
