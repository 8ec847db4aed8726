"""A character model whose get_batch is memoised, so that the text is not encoded anew each time.

The cache holds the batch too: every step trains on the same 24 pieces. The twin memoises only the
encoding. The place is the loader (the input).
"""

from functools import cache

import torch
import torch.nn.functional as F
from data import arguments, text
from torch import nn

KIND = "repeated_batch"
ACCEPT = ("overfit",)
PLACE = ("loader", "input")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
BLOCK = 32


@cache
def encoded(split):
    ids, alphabet = text(seed, sentences=900)
    cut = int(0.9 * len(ids))
    return (ids[:cut] if split == "train" else ids[cut:]), len(alphabet)


def get_batch(split, size):
    ids, _ = encoded(split)
    starts = torch.randint(0, len(ids) - BLOCK - 1, (size,))
    pieces = torch.stack([ids[s : s + BLOCK + 1] for s in starts])
    return pieces[:, :-1], pieces[:, 1:]


if not healthy:
    get_batch = cache(get_batch)


class ConvLM(nn.Module):
    """Causal convolutions with gates."""

    def __init__(self, letters, dim=48, depth=3):
        super().__init__()
        self.embed = nn.Embedding(letters, dim)
        self.convs = nn.ModuleList(nn.Conv1d(dim, 2 * dim, 3, dilation=2**i) for i in range(depth))
        self.norm = nn.LayerNorm(dim)
        self.out = nn.Linear(dim, letters)

    def forward(self, ids):
        h = self.embed(ids).transpose(1, 2)
        for conv in self.convs:
            padded = F.pad(h, (2 * conv.dilation[0], 0))
            h = h + F.glu(conv(padded), dim=1)
        return self.out(self.norm(h.transpose(1, 2)))


_, letters = encoded("train")
model = ConvLM(letters)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for it in range(1, 301):
    x, y = get_batch("train", 24)
    loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if it % 50 == 0:
        model.eval()
        with torch.no_grad():
            x, y = get_batch("val", 100)
            val = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        model.train()
        print(f"iter {it}: train {loss.item():.3f}, val {val.item():.3f}")
