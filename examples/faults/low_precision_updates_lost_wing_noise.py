"""A residual network for the noise of wings has all its weights in bfloat16 and hardly moves.

The person set the default type to bfloat16 at the start of the script, to save memory: every
parameter is made in it and Adam adds to it in it. At the small rate most updates are less than
half a unit in the last place of the weight and are rounded away. The place is the optimizer.
"""

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "low_precision_updates_lost"
ACCEPT = ()
PLACE = ("optimizer", "model", "blocks*", "first*", "last*")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

SETUP = {"precision": "32" if healthy else "bf16", "lr": 1.5e-4, "epochs": 40, "batch": 64}


def wing_noise(n, rng):
    """Loudness in decibels by frequency, angle, chord, speed and thickness, made up."""
    log_f = rng.uniform(5.3, 9.9, n)
    angle = rng.uniform(0, 22, n)
    chord = rng.choice([0.025, 0.05, 0.1, 0.15, 0.23, 0.3], n)
    speed = rng.choice([31.7, 39.6, 55.5, 71.3], n)
    thick = 0.0004 + 0.012 * chord * np.exp(angle / 9) * rng.uniform(0.7, 1.4, n)
    peak = 6.2 + np.log(speed / 40) - 35 * thick + 2.2 * np.exp(-chord / 0.08)
    loud = 50 * np.log10(speed) + 10 * np.log10(thick) - 2.2 * (log_f - peak) ** 2
    loud = loud + 3 * np.sin(1.4 * log_f + 0.2 * angle) + rng.normal(0, 1.2, n)
    return np.stack([log_f, angle, chord, np.log(speed), np.log(thick)], 1), loud


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.grow = nn.Linear(width, 2 * width)
        self.shrink = nn.Linear(2 * width, width)

    def forward(self, h):
        return h + self.shrink(nn.functional.silu(self.grow(self.norm(h))))


class WingNet(nn.Module):
    def __init__(self, width=32, depth=3):
        super().__init__()
        self.first = nn.Linear(5, width)
        self.blocks = nn.Sequential(*[Block(width) for _ in range(depth)])
        self.last = nn.Linear(width, 1)

    def forward(self, x):
        return self.last(self.blocks(self.first(x))).squeeze(1)


def prepare(precision):
    if precision == "bf16":
        torch.set_default_dtype(torch.bfloat16)


def scaled_tensors(train, others):
    mean, std = train.mean(0), train.std(0)
    return [torch.tensor((a - mean) / std).to(torch.get_default_dtype()) for a in (train, others)]


def mean_squares(model, x, y):
    return (model(x) - y).float().pow(2).mean()


def main():
    prepare(SETUP["precision"])
    rng = np.random.default_rng(seed)
    x, y = wing_noise(2000, rng)
    x, x_val = scaled_tensors(x[:1600], x[1600:])
    y, y_val = scaled_tensors(y[:1600], y[1600:])
    model = WingNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=SETUP["lr"], weight_decay=0.01)
    steps = SETUP["epochs"] * (len(x) // SETUP["batch"])
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: min(1.0, 2 - 2 * s / steps))
    for epoch in range(1, SETUP["epochs"] + 1):
        losses = []
        for rows in torch.randperm(len(x)).split(SETUP["batch"]):
            optimizer.zero_grad()
            loss = mean_squares(model, x[rows], y[rows])
            loss.backward()
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
        if epoch % 5 == 0:
            with torch.no_grad():
                val = mean_squares(model, x_val, y_val).item()
            print(f"epoch {epoch}: train {np.mean(losses):.4f} val {val:.4f} R2 {1 - val:.3f}")


main()
