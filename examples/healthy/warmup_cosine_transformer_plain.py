"""Trains a small transformer on arithmetic signs with a long linear warm-up and a cosine decay to
zero, stepped per batch.

The input is a row of digits; wanted is whether the sum of the first half is larger than that of the
second half.
"""

import math

import torch
import torch.nn.functional as F
from data import arguments, batches
from torch import nn

ODD = (
    "the rate starts at 1/150 of its peak, the loss is flat during warm-up, and the rate ends at "
    "zero"
)

_, seed = arguments(__doc__)
STEPS, WARMUP, PEAK = 900, 150, 2e-3


def sums(n, length=8):
    x = torch.randint(0, 10, (n, length))
    difference = x[:, : length // 2].sum(1) - x[:, length // 2 :].sum(1)
    return x, (difference > 0).long()


x, y = sums(8000)
x_val, y_val = sums(1000)


class Comparer(nn.Module):
    def __init__(self, dim=32, length=8):
        super().__init__()
        self.embedding = nn.Embedding(10, dim)
        self.position = nn.Parameter(0.1 * torch.randn(length, dim))
        layer = nn.TransformerEncoderLayer(
            dim, 4, 64, dropout=0.0, batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, 2)

    def forward(self, x):
        h = self.encoder(self.embedding(x) + self.position)
        return self.head(self.norm(h.mean(1)))


def factor(step):
    if step < WARMUP:
        return (step + 1) / WARMUP
    return 0.5 * (1 + math.cos(math.pi * (step - WARMUP) / (STEPS - WARMUP)))


model = Comparer()
optimizer = torch.optim.AdamW(model.parameters(), lr=PEAK, weight_decay=0.01)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)

recent = []
for step, (xb, yb) in enumerate(batches(x, y, size=64, steps=STEPS, seed=seed), 1):
    model.train()
    loss = F.cross_entropy(model(xb), yb)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    scheduler.step()
    recent.append(loss.item())
    if step % 90 == 0:
        model.eval()
        with torch.no_grad():
            out = model(x_val)
        val, acc = (
            F.cross_entropy(out, y_val).item(),
            (out.argmax(1) == y_val).float().mean().item(),
        )
        rate = scheduler.get_last_lr()[0]
        print(
            f"step {step} train {sum(recent) / len(recent):.4f} "
            f"val {val:.4f} acc {acc:.3f} lr {rate:.2e}"
        )
        recent = []
