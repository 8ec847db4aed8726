"""Learns a potential with fine ripples in the plane; in front stands a layer of random waves that
is fixed on purpose, as in the paper on Fourier features.
"""

import torch
from data import arguments, batches
from torch import nn

ODD = "the first layer has random weights and never learns: random Fourier features are fixed"

_, seed = arguments(__doc__)


class Waves(nn.Module):
    def __init__(self, inputs, count, scale):
        super().__init__()
        self.project = nn.Linear(inputs, count)
        nn.init.normal_(self.project.weight, std=scale)
        nn.init.uniform_(self.project.bias, 0, 6.283)
        self.project.requires_grad_(False)

    def forward(self, x):
        return 2**0.5 * torch.cos(self.project(x))


def potential(place):
    u, v = place.T
    far = torch.exp(-2 * (u**2 + v**2))
    return far * torch.sin(9 * u + 2 * v) + 0.5 * torch.cos(7 * v) * u


place, place_val = torch.rand(3000, 2) * 2 - 1, torch.rand(800, 2) * 2 - 1
value, value_val = potential(place), potential(place_val)
spread = value.std()

model = nn.Sequential(
    Waves(2, 128, scale=5.0), nn.Linear(128, 64), nn.SiLU(), nn.Linear(64, 1), nn.Flatten(0)
)
learning = [p for p in model.parameters() if p.requires_grad]
fixed = sum(p.numel() for p in model.parameters()) - sum(p.numel() for p in learning)
print(f"{fixed} fixed numbers in the waves")
optimizer = torch.optim.Adam(learning, lr=2e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=900)
stream = batches(place, value / spread, size=100, steps=900, seed=seed)
for step, (where, target) in enumerate(stream, 1):
    loss = nn.functional.mse_loss(model(where), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    if step % 150 == 0:
        with torch.no_grad():
            val = nn.functional.mse_loss(model(place_val), value_val / spread)
        print(f"step {step}: loss {loss.item():.5f} val {val.item():.5f}")
