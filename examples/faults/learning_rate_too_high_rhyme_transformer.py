"""Continues lines of text with a small transformer; the steps are far too long.

The author trained small perceptrons with Adam at 0.1 and kept the number. For a transformer it is
some thirty times too much: the loss goes down to that of guessing by how common the letters are,
jumps about there, and gets no further.
The place is the optimizer. The twin has 0.003.
"""

import math

import torch
from data import arguments, text
from torch import nn

KIND = "learning_rate_too_high"
ACCEPT = ("bad_optimizer_settings",)
PLACE = ("optimizer",)
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
LR = 3e-3 if healthy else 1e-1
WINDOW, WIDTH, STEPS = 32, 32, 240


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.norm2 = nn.LayerNorm(width)
        self.feed = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x, mask):
        x = self.norm1(x + self.attention(x, x, x, attn_mask=mask, need_weights=False)[0])
        return self.norm2(x + self.feed(x))


class LanguageModel(nn.Module):
    def __init__(self, letters):
        super().__init__()
        self.letters = nn.Embedding(letters, WIDTH)
        self.places = nn.Parameter(0.02 * torch.randn(WINDOW, WIDTH))
        self.blocks = nn.ModuleList([Block(WIDTH, 4) for _ in range(2)])
        self.out = nn.Linear(WIDTH, letters)
        mask = torch.triu(torch.ones(WINDOW, WINDOW, dtype=torch.bool), 1)
        self.register_buffer("mask", mask)

    def forward(self, x):
        h = self.letters(x) + self.places
        for block in self.blocks:
            h = block(h, self.mask)
        return self.out(h)


def sample(data, n, g):
    starts = torch.randint(0, len(data) - WINDOW - 1, (n,), generator=g)
    rows = data[starts.unsqueeze(1) + torch.arange(WINDOW + 1)]
    return rows[:, :-1], rows[:, 1:]


data, alphabet = text(seed)
cut = len(data) * 9 // 10
g = torch.Generator().manual_seed(seed)
model = LanguageModel(len(alphabet))
optimizer = torch.optim.Adam(model.parameters(), lr=LR)
for step in range(1, STEPS + 1):
    x, y = sample(data[:cut], 16, g)
    loss = nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        model.eval()
        with torch.no_grad():
            x, y = sample(data[cut:], 64, g)
            val = nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten()).item()
        model.train()
        print(f"step {step}: loss {loss.item():.3f} val {val:.3f} ({val / math.log(2):.2f} bits)")
