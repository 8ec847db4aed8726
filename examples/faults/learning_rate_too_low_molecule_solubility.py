"""Solubility from counts of atom groups: fine-tuning's learning rate in a training from scratch.

The script was copied from a fine-tuning of a large language model, with `lr=2e-6` and its warm-up.
For a small net that starts at random the same steps are a thousand times too small; the loss is
still where it began when the time is over. The place is the optimizer.
The twin has 3e-3.
"""

from dataclasses import dataclass

import torch
from data import arguments
from torch import nn

KIND = "learning_rate_too_low"
ACCEPT = ()
PLACE = ("optimizer", "loop")
SILENT = False
EXACT = False
EARLY = True


@dataclass
class Settings:
    lr: float
    warmup: int = 30
    steps: int = 500
    batch: int = 40
    weight_decay: float = 0.01
    hidden: int = 64


def molecules(n, g):
    counts = torch.poisson(torch.rand(n, 12, generator=g) * 3, generator=g)
    effect = torch.linspace(-0.7, 0.6, 12)
    log_s = counts @ effect - 0.15 * (counts.sum(1) - 15).clamp(min=0)
    log_s = log_s + 0.4 * (counts[:, 0] * counts[:, 5]).sqrt()
    return counts, log_s + 0.2 * torch.randn(n, generator=g)


def evaluate(model, x, y):
    model.eval()
    with torch.no_grad():
        guess = model(x).squeeze(1)
    model.train()
    return 1 - ((guess - y) ** 2).mean().item() / y.var().item()


def train(settings, seed):
    g = torch.Generator().manual_seed(seed)
    x, y = molecules(2000, g)
    x_val, y_val = molecules(500, g)
    mean, std, shift, scale = x.mean(0), x.std(0), y.mean(), y.std()
    x, x_val = (x - mean) / std, (x_val - mean) / std
    y, y_val = (y - shift) / scale, (y_val - shift) / scale
    model = nn.Sequential(
        nn.Linear(12, settings.hidden),
        nn.GELU(),
        nn.LayerNorm(settings.hidden),
        nn.Linear(settings.hidden, settings.hidden),
        nn.GELU(),
        nn.Linear(settings.hidden, 1),
    )
    opt = torch.optim.AdamW(model.parameters(), settings.lr, weight_decay=settings.weight_decay)
    warm = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: min(1.0, (s + 1) / settings.warmup))
    for step in range(settings.steps):
        rows = torch.randint(len(x), (settings.batch,), generator=g)
        loss = nn.functional.smooth_l1_loss(model(x[rows]).squeeze(1), y[rows])
        opt.zero_grad()
        loss.backward()
        opt.step()
        warm.step()
        if (step + 1) % 100 == 0:
            print(f"{step + 1}: loss {loss.item():.4f} R2 {evaluate(model, x_val, y_val):.3f}")


healthy, seed = arguments(__doc__)
train(Settings(lr=3e-3 if healthy else 2e-6), seed)
