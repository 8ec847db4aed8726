"""A diffusion model of points on a spiral with an averaged copy for sampling, in a bare loop that
has backward and step but no zero_grad.

Every gradient is added to all those before it. Each step follows the sum over the whole run, the
weights swing, and the samples of the averaged copy miss the spiral. The place is the loop.
"""

import copy
import math

import torch
from data import arguments
from torch import nn

KIND = "gradients_not_cleared"
ACCEPT = ()
PLACE = ("loop",)
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

LEVELS, STEPS, BATCH = 40, 1500, 192
alphas = 1 - torch.linspace(1e-3, 0.15, LEVELS)
kept = alphas.cumprod(0)


def spiral(count):
    turn = 1.5 + 3 * math.pi * torch.rand(count).sqrt()
    points = torch.stack([turn * turn.cos(), turn * turn.sin()], 1) / 6
    return points + 0.02 * torch.randn(count, 2)


class Denoiser(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.level = nn.Embedding(LEVELS, width)
        self.enter = nn.Linear(2, width)
        self.layers = nn.Sequential(
            nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(),
            nn.Linear(width, 2),
        )  # fmt: skip

    def forward(self, noisy, level):
        return self.layers(self.enter(noisy) + self.level(level))


def noise_error(model, points):
    level = torch.randint(0, LEVELS, (len(points),))
    noise = torch.randn_like(points)
    rate = kept[level].unsqueeze(1)
    return (model(rate.sqrt() * points + (1 - rate).sqrt() * noise, level) - noise).pow(2).mean()


@torch.no_grad()
def sample(model, count):
    x = torch.randn(count, 2)
    for level in reversed(range(LEVELS)):
        noise = model(x, torch.full((count,), level))
        x = (x - (1 - alphas[level]) / (1 - kept[level]).sqrt() * noise) / alphas[level].sqrt()
        if level > 0:
            x = x + (1 - alphas[level]).sqrt() * torch.randn_like(x)
    return x


def main():
    data = spiral(4000)
    data = (data - data.mean(0)) / data.std()
    train, val = data[:3200], data[3200:]
    model = Denoiser()
    averaged = copy.deepcopy(model).requires_grad_(False)
    optimizer = torch.optim.Adam(model.parameters(), lr=8e-4)
    for step in range(1, STEPS + 1):
        loss = noise_error(model, train[torch.randint(0, len(train), (BATCH,))])
        if healthy:
            optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for slow, fast in zip(averaged.parameters(), model.parameters(), strict=True):
                slow.lerp_(fast, 0.01)
        if step % 250 == 0:
            with torch.no_grad():
                val_loss = sum(noise_error(averaged, val).item() for _ in range(5)) / 5
            distance = torch.cdist(sample(averaged, 400), val).amin(1).mean()
            print(f"step {step:4d} loss {loss.item():.3f} validation {val_loss:.3f} "
                  f"samples off the spiral by {distance:.3f}")  # fmt: skip


main()
