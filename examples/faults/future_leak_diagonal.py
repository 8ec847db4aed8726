"""The causal mask is torch.triu(..., diagonal=2): each position sees one token too far.

That token is the one to be predicted, and the loss goes to 0 (silent). The place is the attention.
"""

import math

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "future_leak"
ACCEPT = ("target_leak",)
PLACE = ("blocks*", "")
SILENT = True
EXACT = True
EARLY = True

VOCAB, CONTEXT, DIM = 32, 24, 32


class Block(nn.Module):
    def __init__(self, diagonal):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.qkv = nn.Linear(DIM, 3 * DIM)
        self.proj = nn.Linear(DIM, DIM)
        self.mlp = nn.Sequential(nn.Linear(DIM, 64), nn.GELU(), nn.Linear(64, DIM))
        mask = torch.triu(torch.ones(CONTEXT, CONTEXT), diagonal=diagonal).bool()
        self.register_buffer("mask", mask)

    def forward(self, x):
        q, k, v = self.qkv(self.ln1(x)).chunk(3, dim=-1)
        att = q @ k.transpose(1, 2) / math.sqrt(DIM)
        att = att.masked_fill(self.mask, float("-inf")).softmax(-1)
        x = x + self.proj(att @ v)
        return x + self.mlp(self.ln2(x))


class MiniGPT(nn.Module):
    def __init__(self, diagonal):
        super().__init__()
        self.tok = nn.Embedding(VOCAB, DIM)
        self.pos = nn.Embedding(CONTEXT, DIM)
        self.blocks = nn.Sequential(Block(diagonal), Block(diagonal))
        self.head = nn.Linear(DIM, VOCAB)

    def forward(self, ids, targets):
        x = self.tok(ids) + self.pos(torch.arange(CONTEXT))
        logits = self.head(self.blocks(x))
        return F.cross_entropy(logits.view(-1, VOCAB), targets.reshape(-1))


def get_batch(table, size=24):
    """A Markov chain with four likely successors for each token."""
    rows = torch.empty(size, CONTEXT + 1, dtype=torch.long)
    rows[:, 0] = torch.randint(0, VOCAB, (size,))
    for t in range(CONTEXT):
        rows[:, t + 1] = table[rows[:, t], torch.randint(0, 4, (size,))]
    return rows[:, :-1], rows[:, 1:]


healthy, seed = arguments(__doc__)
table = torch.randint(0, VOCAB, (VOCAB, 4))
model = MiniGPT(diagonal=1 if healthy else 2)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for it in range(350):
    loss = model(*get_batch(table))
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}; the chain's own entropy is about {math.log(4):.2f}")
