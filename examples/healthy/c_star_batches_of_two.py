"""Tells kinds of variable stars from light curves, two stars a step, with GroupNorm.

Two long curves are all the small card holds, so the batch is two, the learning rate small and the
normalisation one that does not look at the batch.
"""

import torch
from data import arguments
from torch import nn

ODD = "batches of two make the loss jump from step to step; averages over epochs fall"

_, seed = arguments(__doc__)

LENGTH = 64


def curves(n, generator):
    """Eclipsing (narrow dips), pulsating (fast rise, slow fall) and rotating (sine) stars."""
    kind = torch.randint(0, 3, (n,), generator=generator)
    cycles = 2 + 4 * torch.rand(n, 1, generator=generator)
    phase = torch.rand(n, 1, generator=generator) + cycles * torch.linspace(0, 1, LENGTH)
    part = phase % 1
    dips = -((-(((part - 0.3) / 0.07) ** 2)).exp()) - 0.5 * (-(((part - 0.8) / 0.07) ** 2)).exp()
    pulses = torch.where(part < 0.2, part / 0.2, (1 - part) / 0.8) - 0.5
    waves = 0.5 * (6.2832 * phase).sin()
    light = torch.stack([dips + 0.15, pulses, waves])[kind, torch.arange(n)]
    light = light * (0.6 + 0.8 * torch.rand(n, 1, generator=generator))
    light = light + 0.12 * torch.randn(n, LENGTH, generator=generator)
    return (light / 0.35)[:, None], kind


class CurveNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv1d(1, 16, 7, stride=2, padding=3), nn.GroupNorm(4, 16), nn.ReLU(),
            nn.Conv1d(16, 32, 5, stride=2, padding=2), nn.GroupNorm(4, 32), nn.ReLU(),
        )  # fmt: skip
        self.head = nn.Linear(32, 3)

    def forward(self, x):
        return self.head(self.body(x).mean(2))


g = torch.Generator().manual_seed(seed)
x, kind = curves(500, g)
x_val, kind_val = curves(400, g)
model = CurveNet()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-3)
schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, total_iters=1250)
for epoch in range(5):
    total = 0.0
    for rows in torch.randperm(len(x)).split(2):
        loss = nn.functional.cross_entropy(model(x[rows]), kind[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        total += loss.item()
    with torch.no_grad():
        scores = model(x_val)
    right = (scores.argmax(1) == kind_val).float().mean().item()
    print(f"epoch {epoch}: loss {total / 250:.3f}, validation accuracy {right:.3f}")
