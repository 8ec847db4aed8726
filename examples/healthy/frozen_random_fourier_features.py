"""Kernel regression by random Fourier features: a frozen random first layer and a trained linear
read-out.

Nothing is wrong; there is no place to name.
"""

import math

import torch
from data import arguments
from torch import nn

ODD = (
    "Most of the weights are random and frozen on purpose (requires_grad=False); only the "
    "read-out learns."
)

_, seed = arguments(__doc__)


class FourierFeatures(nn.Module):
    def __init__(self, inputs, features, length_scale):
        super().__init__()
        self.project = nn.Linear(inputs, features)
        nn.init.normal_(self.project.weight, std=1 / length_scale)
        nn.init.uniform_(self.project.bias, 0, 2 * math.pi)
        self.project.requires_grad_(False)

    def forward(self, x):
        return math.sqrt(2) * torch.cos(self.project(x))


def terrain(n):
    xy = torch.rand(n, 2) * 4 - 2
    z = torch.sin(2 * xy[:, 0]) * torch.cos(1.5 * xy[:, 1]) + 0.3 * xy[:, 0] * xy[:, 1]
    return xy, (z + 0.05 * torch.randn(n)) / 0.63


x, y = terrain(2500)
x_val, y_val = terrain(500)
features = FourierFeatures(2, 200, 0.8)
read_out = nn.Linear(200, 1)
nn.init.zeros_(read_out.weight)
model = nn.Sequential(features, read_out)
optimizer = torch.optim.SGD(read_out.parameters(), lr=5e-3, momentum=0.9)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 25)
for epoch in range(25):
    for rows in torch.randperm(2500).split(125):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x[rows])[:, 0], y[rows])
        loss.backward()
        optimizer.step()
    scheduler.step()
    if epoch % 5 == 4:
        with torch.no_grad():
            val = nn.functional.mse_loss(model(x_val)[:, 0], y_val).item()
        print(f"epoch {epoch + 1}: mse {loss.item():.4f} val {val:.4f}")
