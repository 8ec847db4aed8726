"""A diffusion model of points on two spirals: its loss is flat after the first hundred steps.

The network guesses the noise; most of it cannot be known, so the loss stays at a floor and jumps
with the drawn times, while the samples go on getting closer to the spirals. People ask whether
the training has stopped; it has not, the loss does not show it.
"""

import copy
import math

import torch
from data import arguments
from torch import nn

ODD = "loss flat and noisy near 0.40 from early on, while the samples keep getting better"
_, seed = arguments(__doc__)

TIMES, STEPS = 60, 2400


def spirals(n, generator):
    turn = torch.rand(n, generator=generator).sqrt() * 3 * math.pi + 0.5
    side = torch.randint(0, 2, (n,), generator=generator) * math.pi
    points = torch.stack([(turn + side).cos(), (turn + side).sin()], 1) * turn.unsqueeze(1) / 5
    return (points + 0.02 * torch.randn(n, 2, generator=generator)) / 0.95


class NoiseGuess(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.register_buffer("pitch", 2.0 ** torch.arange(4))
        self.net = nn.Sequential(
            nn.Linear(2 + 2 * 2 * 4 + 8, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(),
            nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 2),
        )  # fmt: skip

    def forward(self, x, t):
        at = (x.unsqueeze(-1) * self.pitch).flatten(1)
        when = (t / TIMES).unsqueeze(1) * self.pitch * math.pi / 2
        return self.net(torch.cat([x, at.sin(), at.cos(), when.sin(), when.cos()], 1))


class Diffusion:
    def __init__(self):
        self.beta = torch.linspace(1e-3, 0.15, TIMES)
        self.kept = (1 - self.beta).cumprod(0)

    def loss(self, model, x):
        t = torch.randint(0, TIMES, (len(x),))
        noise = torch.randn_like(x)
        kept = self.kept[t].unsqueeze(1)
        return (model(kept.sqrt() * x + (1 - kept).sqrt() * noise, t.float()) - noise).pow(2).mean()

    @torch.no_grad()
    def sample(self, model, n):
        x = torch.randn(n, 2)
        for t in reversed(range(TIMES)):
            guess = model(x, torch.full((n,), float(t)))
            x = (x - self.beta[t] / (1 - self.kept[t]).sqrt() * guess) / (1 - self.beta[t]).sqrt()
            if t > 0:
                x = x + self.beta[t].sqrt() * torch.randn_like(x)
        return x


def main():
    generator = torch.Generator().manual_seed(seed)
    train, held_out = spirals(4000, generator), spirals(1000, generator)
    model, diffusion = NoiseGuess(), Diffusion()
    average = copy.deepcopy(model).requires_grad_(False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
    seen = []
    for step in range(1, STEPS + 1):
        loss = diffusion.loss(model, train[torch.randint(0, len(train), (128,))])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        for mine, theirs in zip(average.parameters(), model.parameters(), strict=True):
            mine.lerp_(theirs.detach(), 0.01)
        seen.append(loss.item())
        if step % 300 == 0:
            with torch.no_grad():
                val = diffusion.loss(average, held_out.repeat(4, 1)).item()
            away = torch.cdist(diffusion.sample(average, 500), held_out).min(1).values.mean()
            print(
                f"step {step} loss {sum(seen[-300:]) / 300:.3f} val {val:.3f} "
                f"samples off the spirals by {away:.4f}"
            )


main()
