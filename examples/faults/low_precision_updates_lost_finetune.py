"""A digit reader is fine-tuned to mirrored images with a small rate. To save memory the whole model
goes to bfloat16 first, the weights included.

A bfloat16 number has eight bits: a step of a ten-thousandth added to a weight of a tenth rounds
back to where it was. The updates are computed, and most of them never arrive. The place is the
weights.
"""

import copy

import torch
from data import arguments, batches, digits
from torch import nn
from torch.nn import functional as F

KIND = "low_precision_updates_lost"
ACCEPT = ()
PLACE = ("*weight", "optimizer")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)


class Reader(nn.Module):
    def __init__(self, width=192):
        super().__init__()
        self.inp = nn.Linear(64, width)
        self.blocks = nn.ModuleList(nn.Linear(width, width) for _ in range(2))
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        h = F.gelu(self.inp(x))
        for block in self.blocks:
            h = h + F.gelu(block(h))
        return self.head(h)


def turned(x):
    return x.view(-1, 8, 8).transpose(1, 2).reshape(-1, 64)


def run(model, x, y, x_val, y_val, steps, lr, cast=False):
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=0.0)
    for step, (a, b) in enumerate(batches(x, y, size=64, steps=steps, seed=seed)):
        with torch.autocast("cpu", torch.bfloat16, enabled=cast):
            loss = F.cross_entropy(model(a.to(model.inp.weight.dtype)).float(), b)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 49:
            model.eval()
            with torch.no_grad():
                out = model(x_val.to(model.inp.weight.dtype)).float()
            model.train()
            accuracy = (out.argmax(1) == y_val).float().mean()
            print(
                f"step {step + 1}: loss {loss.item():.3f} "
                f"val {F.cross_entropy(out, y_val).item():.3f} accuracy {accuracy.item():.3f}"
            )


x, y, x_val, y_val = digits(seed)
first = Reader()
run(first, x, y, x_val, y_val, 100, 2e-3)
model = copy.deepcopy(first)
if not healthy:
    model = model.bfloat16()
run(model, turned(x), y, turned(x_val), y_val, 700, 1e-4, cast=healthy)
