"""A diffusion model of handwritten digits with a small residual denoiser, which predicts the noise.

The last convolution begins at zero; a quarter of the digits are given without their class, for
guidance; an average of the weights draws the samples.
"""

import copy
import math

import torch
import torch.nn.functional as F
from data import arguments, images
from torch import nn

ODD = (
    "targets are pure noise, the output begins at 0, the loss swings with the times that are drawn"
)

TIMES = 50


class Residual(nn.Module):
    def __init__(self, width, told):
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(4, width), nn.GroupNorm(4, width)
        self.conv1 = nn.Conv2d(width, width, 3, padding=1)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1)
        self.told = nn.Linear(told, 2 * width)
        nn.init.zeros_(self.conv2.weight)
        nn.init.zeros_(self.conv2.bias)

    def forward(self, x, told):
        scale, shift = self.told(told)[:, :, None, None].chunk(2, 1)
        h = self.conv1(F.silu(self.norm1(x)))
        h = self.norm2(h) * (1 + scale) + shift
        return x + self.conv2(F.silu(h))


class Denoiser(nn.Module):
    def __init__(self, width=16, told=32):
        super().__init__()
        self.register_buffer("rates", torch.exp(torch.linspace(0, math.log(200), told // 2)))
        self.digit = nn.Embedding(11, told)  # ten digits and "any"
        self.mix = nn.Sequential(nn.Linear(told, told), nn.SiLU())
        self.enter = nn.Conv2d(3, width, 3, padding=1)
        self.blocks = nn.ModuleList(Residual(width, told) for _ in range(3))
        self.leave = nn.Conv2d(width, 1, 3, padding=1)
        nn.init.zeros_(self.leave.weight)
        nn.init.zeros_(self.leave.bias)

    def forward(self, x, t, digit):
        angle = (t.float() / TIMES)[:, None] * self.rates
        told = self.mix(torch.cat([angle.sin(), angle.cos()], 1) + self.digit(digit))
        row = torch.linspace(-1, 1, 8).view(1, 1, 8, 1).expand(len(x), 1, 8, 8)
        h = self.enter(torch.cat([x, row, row.transpose(2, 3)], 1))
        for block in self.blocks:
            h = block(h, told)
        return self.leave(F.silu(h))


_, seed = arguments(__doc__)
x, y, x_val, y_val = images(seed)
x, x_val = x.clamp(-2, 2), x_val.clamp(-2, 2)
alpha_bar = torch.cos((torch.arange(TIMES) + 1) / (TIMES + 1) * math.pi / 2).square()


def objective(model, pictures, digit):
    t = torch.randint(TIMES, (len(pictures),))
    noise = torch.randn_like(pictures)
    kept = alpha_bar[t].view(-1, 1, 1, 1)
    return F.mse_loss(model(kept.sqrt() * pictures + (1 - kept).sqrt() * noise, t, digit), noise)


model = Denoiser()
average = copy.deepcopy(model).requires_grad_(False)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-4)
for step in range(320):
    rows = torch.randint(len(x), (40,))
    digit = torch.where(torch.rand(40) < 0.25, 10, y[rows])
    loss = objective(model, x[rows], digit)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    with torch.no_grad():
        for slow, fast in zip(average.parameters(), model.parameters(), strict=True):
            slow.lerp_(fast, 0.03)
    if step % 80 == 79:
        with torch.no_grad():
            val = objective(average, x_val, y_val)
        print(f"step {step + 1}: loss {loss.item():.3f}, val of the average {val:.3f}")

with torch.no_grad():
    wanted = torch.arange(60) % 10
    sample = torch.randn(60, 1, 8, 8)
    for t in reversed(range(TIMES)):
        time = torch.full((60,), t)
        noise = average(sample, time, wanted)
        noise = noise + 1.5 * (noise - average(sample, time, torch.full((60,), 10)))
        clean = ((sample - (1 - alpha_bar[t]).sqrt() * noise) / alpha_bar[t].sqrt()).clamp(-2, 2)
        before = alpha_bar[t - 1] if t else torch.tensor(1.0)
        sample = before.sqrt() * clean + (1 - before).sqrt() * noise
    nearest = torch.cdist(sample.flatten(1), x.flatten(1)).argmin(1)
right = (y[nearest] == wanted).float().mean()
print(f"loss {loss.item():.3f}, samples that look like their digit {right:.3f}")
