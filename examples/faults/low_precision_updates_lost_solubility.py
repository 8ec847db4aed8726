"""Predicts how well a molecule dissolves; the weights are kept in bfloat16 and most steps vanish.

To save memory the whole model was cast to bfloat16, as is done for inference. The optimizer now
adds its small steps to numbers with three digits, and nearly all of them are rounded away, the
more so the further the cosine schedule goes down.
The place is the optimizer's step on the bfloat16 weights.
The twin keeps the weights in float32 and computes in bfloat16 under autocast.
"""

import numpy as np
import torch
from data import arguments, batches
from torch import nn

KIND = "low_precision_updates_lost"
ACCEPT = ("gradient_underflow",)
PLACE = ("optimizer", "loop", "embed", "blocks", "blocks.0", "blocks.1", "out")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


def molecules(n, seed):
    """Counts of twenty fragments; the solubility (log, standardised)."""
    r = np.random.default_rng(seed)
    weights = np.random.default_rng(99).normal(0, 0.35, 20)
    counts = r.poisson(1.2, (n, 20))
    polar, rings = counts[:, :5].sum(1), counts[:, 5:8].sum(1)
    value = np.sqrt(counts) @ weights + 0.9 * np.tanh(polar / 3 - 2) * rings / 2
    value = value - 0.25 * rings * (counts[:, 9] > 1) + r.normal(0, 0.15, n)
    x = torch.tensor((counts - 1.2) / 1.1, dtype=torch.float32)
    return x, torch.tensor(value / 1.3, dtype=torch.float32)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


class Net(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.embed = nn.Linear(20, width)
        self.blocks = nn.Sequential(Block(width), Block(width))
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        return self.out(self.blocks(self.embed(x))).squeeze(-1)


STEPS = 700
x, y = molecules(3000, seed)
x_val, y_val = molecules(800, seed + 400)
model = Net()
if not healthy:
    model, x, x_val = model.to(torch.bfloat16), x.to(torch.bfloat16), x_val.to(torch.bfloat16)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4, weight_decay=0.01)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)


def predict(rows):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return model(rows).float()


for step, (rows, truth) in enumerate(batches(x, y, size=64, steps=STEPS, seed=seed), 1):
    loss = nn.functional.mse_loss(predict(rows), truth)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    if step % 100 == 0:
        with torch.no_grad():
            error = nn.functional.mse_loss(predict(x_val), y_val)
        print(f"{step:4d}  train {loss.item():.4f}  val {error.item():.4f}")
