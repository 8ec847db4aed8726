"""An online learner for the temperature of a boiler: one measurement, one step, never seen again.

The rows arrive as a stream and are thrown away after their step. The single losses leap about by
factors of a hundred, as single squared errors do; their running mean falls.
"""

import math

import torch
from data import arguments
from torch import nn

ODD = "batches of one row, so that loss and gradients are very noisy; the learning rate suits it"


def stream(count, g):
    heat = 0.0
    for t in range(count):
        valve = 0.5 + 0.5 * math.sin(t / 9) + 0.3 * torch.randn((), generator=g).item()
        inflow = torch.randn((), generator=g).item()
        outside = math.sin(t / 60) + 0.2 * torch.randn((), generator=g).item()
        now = 0.7 * heat + 0.6 * max(valve, 0) - 0.2 * inflow + 0.1 * outside - 0.3
        reading = now + 0.03 * torch.randn((), generator=g).item()
        yield torch.tensor([[heat, 2 * valve - 1, inflow, outside]]), torch.tensor([[reading]])
        heat = now


_, seed = arguments(__doc__)
g = torch.Generator().manual_seed(seed)
model = nn.Sequential(nn.Linear(4, 24), nn.Tanh(), nn.Linear(24, 1))
opt = torch.optim.SGD(model.parameters(), lr=0.03)
fade = torch.optim.lr_scheduler.LambdaLR(opt, lambda t: 1 / (1 + t / 400))
mean = None
for t, (x, y) in enumerate(stream(1400, g), 1):
    loss = (model(x) - y).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    fade.step()
    mean = loss.item() if mean is None else 0.99 * mean + 0.01 * loss.item()
    if t % 200 == 0:
        print(f"after {t} readings: running loss {mean:.4f}")
later = list(stream(300, torch.Generator().manual_seed(seed + 9)))
with torch.no_grad():
    error = torch.cat([model(x) - y for x, y in later])
print(f"another day: rmse {error.square().mean().sqrt():.3f}")
