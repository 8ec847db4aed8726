"""A tiny transformer sorts digits (sequence to sequence in one pass), with warm-up from zero and
cosine to zero.

The rate begins at 0 (the first step changes nothing but the moments), grows for 100 steps and ends
at 0. The output layer is tied to the embedding, the residual branches begin at zero, so that the
first loss is ln 16.
"""

import math

import torch
from data import arguments
from torch import nn

ODD = (
    "a rate of zero at the first and last steps, zero-initialised layers, tied weights, clipping "
    "at every step"
)

_, seed = arguments(__doc__)
SYMBOLS, LENGTH, STEPS, WARMUP = 16, 8, 700, 100


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.mlp = nn.Sequential(
            nn.Linear(width, 3 * width), nn.GELU(), nn.Linear(3 * width, width)
        )
        for last in (self.attention.out_proj, self.mlp[-1]):
            nn.init.zeros_(last.weight), nn.init.zeros_(last.bias)

    def forward(self, x):
        h = self.norm1(x)
        x = x + self.attention(h, h, h, need_weights=False)[0]
        return x + self.mlp(self.norm2(x))


class Sorter(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.embed = nn.Embedding(SYMBOLS, width)
        self.position = nn.Parameter(torch.randn(LENGTH, width) * 0.02)
        nn.init.normal_(self.embed.weight, std=0.05)
        self.blocks = nn.Sequential(Block(width, 4), Block(width, 4))
        self.norm = nn.LayerNorm(width)
        self.out = nn.Linear(width, SYMBOLS, bias=False)
        self.out.weight = self.embed.weight

    def forward(self, x):
        return self.out(self.norm(self.blocks(self.embed(x) + self.position)))


def batch(n):
    x = torch.randint(0, SYMBOLS, (n, LENGTH))
    return x, x.sort(1).values


def rate(step):
    if step < WARMUP:
        return step / WARMUP
    return 0.5 * (1 + math.cos(math.pi * (step - WARMUP) / (STEPS - WARMUP)))


model = Sorter()
optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, betas=(0.9, 0.98), weight_decay=0.05)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
x_val, y_val = batch(500)
for step in range(1, STEPS + 1):
    model.train()
    x, y = batch(64)
    loss = nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    optimizer.step()
    scheduler.step()
    if step % 100 == 0:
        model.eval()
        with torch.no_grad():
            out = model(x_val)
        val_loss = nn.functional.cross_entropy(out.flatten(0, 1), y_val.flatten())
        right = (out.argmax(2) == y_val).float().mean()
        print(
            f"step {step} loss {loss.item():.4f} val loss {val_loss:.4f} val accuracy {right:.3f}"
        )
