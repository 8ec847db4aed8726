"""A transformer learns to continue tunes note by note, without a causal mask.

Each place sees the note that it must foretell. The loss falls far below what the generator of the
tunes allows, and a tune that the model continues by itself is worthless: the last line tells how
well it foretells a note that is not in its input. The place is the blocks' attention.
"""

import torch
from data import arguments
from torch import nn
from torch.nn import functional as F

KIND = "future_leak"
ACCEPT = ("target_leak",)
PLACE = ("blocks*", "loop", "input*")
SILENT = True
EXACT = True
EARLY = False
healthy, seed = arguments(__doc__)

NOTES, LENGTH = 24, 32


def tunes(n):
    """The next note is one of three steps from the last, by the step before it; some are free."""
    x = torch.randint(0, NOTES, (n, LENGTH + 1))
    for i in range(2, LENGTH + 1):
        up = (x[:, i - 1] - x[:, i - 2]) % NOTES < NOTES // 2
        steps = torch.tensor([[-3, -1, 2], [1, 3, -2]])[up.long()]
        chosen = steps.gather(1, torch.multinomial(torch.tensor([0.7, 0.2, 0.1]), n, True)[:, None])
        free = torch.rand(n) < 0.1
        x[:, i] = torch.where(free, x[:, i], (x[:, i - 1] + chosen[:, 0]) % NOTES)
    return x


class Block(nn.Module):
    def __init__(self, width, heads=4):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.merge = nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 96), nn.GELU(), nn.Linear(96, width))

    def forward(self, x):
        n, t, width = x.shape
        parts = self.qkv(self.norm1(x)).view(n, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(*parts, is_causal=healthy)
        x = x + self.merge(seen.transpose(1, 2).reshape(n, t, width))
        return x + self.mlp(self.norm2(x))


class TuneModel(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.note = nn.Embedding(NOTES, width)
        self.place = nn.Embedding(LENGTH, width)
        self.blocks = nn.Sequential(Block(width), Block(width))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, NOTES)

    def forward(self, x):
        x = self.note(x) + self.place.weight[: x.shape[1]]
        return self.head(self.norm(self.blocks(x)))


train, val = tunes(4000), tunes(400)
model = TuneModel()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, betas=(0.9, 0.95))
for step in range(1, 501):
    x = train[torch.randint(0, len(train), (32,))]
    loss = F.cross_entropy(model(x[:, :-1]).flatten(0, 1), x[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    if step % 50 == 0:
        model.eval()
        with torch.no_grad():
            scores = model(val[:, :-1])
            held = F.cross_entropy(scores.flatten(0, 1), val[:, 1:].flatten())
        model.train()
        print(f"step {step} loss {loss.item():.4f} val loss {held.item():.4f}")
with torch.no_grad():
    model.eval()
    for cut in (10, 20, 31):
        unseen = F.cross_entropy(model(val[:, :cut])[:, -1], val[:, cut])
        print(f"loss of note {cut}, which is not in the input: {unseen.item():.4f}")
