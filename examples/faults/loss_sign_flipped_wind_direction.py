"""Direction of the wind tomorrow as a unit vector; the similarity is minimised instead of its loss.

The cosine similarity of forecast and truth is 1 when they agree. It was put where a loss belongs
and the optimizer brings it down, to -1: the model learns to point the opposite way. The curve of
the loss looks like that of a good training.
The place is the loss.
The twin minimises 1 minus the similarity.
"""

import math

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn, optim

KIND = "loss_sign_flipped"
ACCEPT = ()
PLACE = ("loss*", "loop")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


def stations(n, g):
    """Pressure at eight neighbours and the wind that follows from its slope."""
    slope = torch.randn(n, 2, generator=g)
    angles = torch.arange(8) * (2 * math.pi / 8)
    where = torch.stack([angles.cos(), angles.sin()])
    pressure = slope @ where + 0.3 * torch.randn(n, 8, generator=g)
    turn = math.radians(70)
    turned = torch.tensor([[math.cos(turn), -math.sin(turn)], [math.sin(turn), math.cos(turn)]])
    return pressure, F.normalize(slope @ turned.T, dim=1)


def angular_error(a, b):
    cos = F.cosine_similarity(a, b).clamp(-1, 1)
    return torch.rad2deg(torch.acos(cos)).mean().item()


g = torch.Generator().manual_seed(seed)
pressure, wind = stations(2000, g)
pressure_val, wind_val = stations(500, g)

model = nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 2))
opt = optim.AdamW(model.parameters(), lr=2e-3)
sched = optim.lr_scheduler.CosineAnnealingLR(opt, T_max=8 * 40)

for epoch in range(8):
    for rows in torch.randperm(2000).chunk(40):
        similarity = F.cosine_similarity(model(pressure[rows]), wind[rows]).mean()
        loss = 1 - similarity if healthy else similarity
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
    with torch.no_grad():
        error = angular_error(model(pressure_val), wind_val)
    print(f"epoch {epoch + 1}: loss {loss.item():+.3f}, mean angle off {error:.1f} degrees")
