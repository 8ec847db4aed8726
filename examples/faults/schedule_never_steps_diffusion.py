"""A small diffusion model of points on two spirals, whose warm-up schedule never moves on.

The rate starts at a five-hundredth and should rise over 100 steps, then fall as a cosine;
`scheduler.step()` is missing from the loop, so it stays at the first value. The place is the
optimizer's schedule (the loop).
"""

import math

import torch
from data import arguments
from torch import nn

KIND = "schedule_never_steps"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("optimizer", "loop")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

TIMES, STEPS, WARM = 100, 1500, 100
beta = torch.linspace(1e-3, 0.08, TIMES)
kept = (1 - beta).cumprod(0)


def spirals(n):
    t = 1 + 2.2 * math.pi * torch.rand(n).sqrt()
    arm = math.pi * torch.randint(0, 2, (n,))
    points = torch.stack([t * torch.cos(t + arm), t * torch.sin(t + arm)], 1)
    return points / 4 + 0.03 * torch.randn(n, 2)


class Denoiser(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.time = nn.Embedding(TIMES, width)
        self.enter = nn.Linear(2, width)
        self.middle = nn.Linear(width, width)
        self.deep = nn.Linear(width, width)
        self.noise = nn.Linear(width, 2)

    def forward(self, x, t):
        h = nn.functional.silu(self.enter(x) + self.time(t))
        h = nn.functional.silu(self.middle(h) + self.time(t))
        h = h + nn.functional.silu(self.deep(h))
        return self.noise(h)


def loss_of(model, x, generator=None):
    t = torch.randint(0, TIMES, (len(x),), generator=generator)
    noise = torch.randn(x.shape, generator=generator)
    share = kept[t].unsqueeze(1)
    return nn.functional.mse_loss(model(share.sqrt() * x + (1 - share).sqrt() * noise, t), noise)


def factor(step):
    if step < WARM:
        return max(step / WARM, 0.002)
    return 0.5 * (1 + math.cos(math.pi * (step - WARM) / (STEPS - WARM)))


data, held = spirals(6000), spirals(2000)
model = Denoiser()
optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=1e-4)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
for step in range(STEPS):
    loss = loss_of(model, data[torch.randint(0, len(data), (256,))])
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    if healthy:
        scheduler.step()
    if step % 250 == 249:
        with torch.no_grad():
            val = loss_of(model, held, torch.Generator().manual_seed(1)).item()
        print(f"step {step} loss {loss.item():.4f} val {val:.4f}")
