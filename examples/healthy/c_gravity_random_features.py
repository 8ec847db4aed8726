"""Maps the gravity of a region from scattered points with random waves that are never trained.

The first layer draws its waves once and keeps them (random Fourier features); the only thing
learned is the linear layer behind, for which that is as good as a kernel method.
"""

import math

import torch
from data import arguments, batches
from torch import nn

ODD = "most of the parameters are frozen at random values on purpose"

_, seed = arguments(__doc__)


class RandomWaves(nn.Module):
    def __init__(self, inputs, waves, scale):
        super().__init__()
        self.project = nn.Linear(inputs, waves)
        nn.init.normal_(self.project.weight, std=scale)
        nn.init.uniform_(self.project.bias, 0, 2 * math.pi)
        self.project.requires_grad_(False)
        self.factor = math.sqrt(2)

    def forward(self, x):
        return self.factor * torch.cos(self.project(x))


def survey(n, generator):
    place = 2 * torch.rand(n, 2, generator=generator) - 1
    east, north = place.T
    gravity = 8 * torch.exp(-((east - 0.3) ** 2 + (north + 0.2) ** 2) / 0.08)
    gravity = gravity - 6 * torch.exp(-((east + 0.5) ** 2 + (north - 0.4) ** 2) / 0.15)
    gravity = gravity + 3 * east * north + 2 * (4 * north).sin()
    return place, (gravity + 0.3 * torch.randn(n, generator=generator) - 0.5) / 2.5


g = torch.Generator().manual_seed(seed)
x, y = survey(2500, g)
x_val, y_val = survey(700, g)
model = nn.Sequential(RandomWaves(2, 256, 4.0), nn.Linear(256, 1))
trained = [p for p in model.parameters() if p.requires_grad]
optimizer = torch.optim.Adam(trained, lr=3e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 800)
for step, (rows, gravity) in enumerate(batches(x, y, size=64, steps=800, seed=seed), 1):
    loss = nn.functional.mse_loss(model(rows)[:, 0], gravity)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    if step % 100 == 0:
        with torch.no_grad():
            error = nn.functional.mse_loss(model(x_val)[:, 0], y_val)
        print(f"step {step}: loss {loss.item():.4f}, validation {error.item():.4f}")
