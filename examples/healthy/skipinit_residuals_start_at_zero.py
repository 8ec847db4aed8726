"""Strength of concrete mixes by a deep residual net without normalisation: every branch starts at
zero.

SkipInit: each residual branch is multiplied by a scalar that starts at 0, and the output layer is
zero as well, so the first gradients of nearly all weights are exactly zero and the first output is
constant. After a few steps the scalars wake the branches. The rate rises in a warm-up and is large
in the middle.
"""

import torch
from data import arguments, standardise
from torch import nn

ODD = "output layer and branch scalars start at zero, so most gradients are exactly zero at first"

_, seed = arguments(__doc__)


def mixes(n: int):
    g = torch.Generator().manual_seed(480 + seed)
    cement = 150 + 350 * torch.rand(n, generator=g)
    slag = (250 * torch.rand(n, generator=g) - 80).clamp(min=0)
    ash = (200 * torch.rand(n, generator=g) - 70).clamp(min=0)
    water = 140 + 80 * torch.rand(n, generator=g)
    plastic = (20 * torch.rand(n, generator=g) - 5).clamp(min=0)
    age = torch.tensor([3.0, 7, 14, 28, 56, 90])[torch.randint(0, 6, (n,), generator=g)]
    binder = cement + 0.8 * slag + 0.4 * ash * (age / 90).sqrt()
    ratio = water * (1 - 0.012 * plastic) / binder
    strength = (
        110 * torch.exp(-1.6 * ratio) * (1 - torch.exp(-0.45 * age.sqrt()))
        - 0.15 * (plastic - 8).clamp(min=0) ** 2
    )
    x = torch.stack([cement, slag, ash, water, plastic, age.log()], 1)
    return x, strength[:, None] + 2.0 * torch.randn(n, 1, generator=g)


class Branch(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.a, self.b = nn.Linear(width, width), nn.Linear(width, width)
        self.scale = nn.Parameter(torch.zeros(()))

    def forward(self, h):
        return h + self.scale * self.b(torch.relu(self.a(torch.relu(h))))


class ResidualNet(nn.Module):
    def __init__(self, inputs: int, width: int = 64, depth: int = 8):
        super().__init__()
        self.lift = nn.Linear(inputs, width)
        self.branches = nn.ModuleList(Branch(width) for _ in range(depth))
        self.out = nn.Linear(width, 1)
        nn.init.zeros_(self.out.weight)
        nn.init.zeros_(self.out.bias)

    def forward(self, x):
        h = self.lift(x)
        for branch in self.branches:
            h = branch(h)
        return self.out(torch.relu(h))


x, y = mixes(3200)
x, x_val = standardise(x[:2400], x[2400:])
y, y_val = standardise(y[:2400], y[2400:])
model = ResidualNet(6)
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, weight_decay=1e-4)
epochs = 18
schedule = torch.optim.lr_scheduler.OneCycleLR(
    optimizer, 0.03, total_steps=epochs * 48, pct_start=0.2
)


def batches(size: int = 50):
    yield from torch.randperm(2400).split(size)


for epoch in range(epochs):
    model.train()
    total = 0.0
    for rows in batches():
        loss = nn.functional.mse_loss(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        total += loss.item() / 48
    model.eval()
    with torch.no_grad():
        val = nn.functional.mse_loss(model(x_val), y_val).item()
    if epoch % 4 == 1:
        print(f"epoch {epoch + 1}: train {total:.4f}, validation {val:.4f}")
print(f"validation R2 {1 - val / y_val.var().item():.4f}")
