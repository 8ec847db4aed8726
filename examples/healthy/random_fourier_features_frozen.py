"""Wind power from weather by random Fourier features: the first layer is random and never trained.

The frequencies are drawn once from the kernel's spectrum (Rahimi and Recht) and frozen; only the
linear head learns, which makes it a kernel machine with a convex loss. Most of the parameters are
frozen and random by design; cosines of large arguments are no saturation.
"""

import math

import torch
from data import arguments, standardise
from torch import nn

ODD = "nearly all parameters are random and frozen; only the last layer trains, with a large rate"

_, seed = arguments(__doc__)


def turbines(n: int):
    g = torch.Generator().manual_seed(420 + seed)
    speed = torch.distributions.Weibull(9.0, 2.1).icdf(
        torch.rand(n, generator=g).clamp(1e-4, 1 - 1e-4)
    )
    direction = 6.283 * torch.rand(n, generator=g)
    density = 1.2 + 0.05 * torch.randn(n, generator=g)
    gust = torch.randn(n, generator=g).abs()
    wake = 1 - 0.35 * torch.exp(-(((direction - 3.5) / 0.5) ** 2))
    power = torch.sigmoid((speed * wake - 8.5) * 0.9) * (density / 1.2) - 0.05 * gust * (speed > 10)
    power = power + 0.04 * torch.randn(n, generator=g)
    return torch.stack([speed, direction.sin(), direction.cos(), density, gust], 1), power


class FourierFeatures(nn.Module):
    def __init__(self, inputs: int, features: int, width: float):
        super().__init__()
        self.project = nn.Linear(inputs, features)
        nn.init.normal_(self.project.weight, std=1 / width)
        nn.init.uniform_(self.project.bias, 0, 2 * math.pi)
        self.project.requires_grad_(False)

    def forward(self, x):
        return math.sqrt(2) * torch.cos(self.project(x))


x, y = turbines(6000)
x, x_val = standardise(x[:4500], x[4500:])
y, y_val = standardise(y[:4500, None], y[4500:, None])
model = nn.Sequential(FourierFeatures(5, 500, width=2.2), nn.Linear(500, 1))
nn.init.zeros_(model[1].weight)
optimizer = torch.optim.SGD(model[1].parameters(), lr=0.004, momentum=0.9, weight_decay=1e-5)
epochs = 24
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)

for epoch in range(epochs):
    model.train()
    total = 0.0
    for rows in torch.randperm(len(x)).split(100):
        loss = nn.functional.mse_loss(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows) / len(x)
    schedule.step()
    model.eval()
    with torch.no_grad():
        val = nn.functional.mse_loss(model(x_val), y_val).item()
    if epoch % 4 == 3:
        print(f"epoch {epoch + 1}: train {total:.4f}, validation {val:.4f}")
print(f"validation R2 {1 - val / y_val.var().item():.4f}")
