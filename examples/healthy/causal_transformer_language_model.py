"""A small decoder-only transformer with causal mask and tied embeddings learns sentences letter by
letter.

The mask forbids the future by -inf entries, the output layer is the embedding, and the first steps
have a tiny rate.
"""

import torch
import torch.nn.functional as F
from data import arguments, text
from torch import nn

ODD = "-inf in the mask, tied weights, warm-up, most attention entries are zero"

_, seed = arguments(__doc__)
LENGTH, DIM, STEPS = 64, 48, 350


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attention = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x, mask):
        h = self.norm1(x)
        x = x + self.attention(h, h, h, attn_mask=mask, need_weights=False)[0]
        return x + self.mlp(self.norm2(x))


class LanguageModel(nn.Module):
    def __init__(self, letters):
        super().__init__()
        self.embed = nn.Embedding(letters, DIM)
        self.position = nn.Embedding(LENGTH, DIM)
        self.blocks = nn.ModuleList(Block(DIM, 4) for _ in range(2))
        self.norm = nn.LayerNorm(DIM)
        self.out = nn.Linear(DIM, letters, bias=False)
        nn.init.normal_(self.embed.weight, std=0.1)
        nn.init.normal_(self.position.weight, std=0.1)
        self.out.weight = self.embed.weight
        mask = torch.full((LENGTH, LENGTH), float("-inf")).triu(1)
        self.register_buffer("mask", mask)

    def forward(self, x):
        h = self.embed(x) + self.position.weight[: x.shape[1]]
        for block in self.blocks:
            h = block(h, self.mask)
        return self.out(self.norm(h))


letters, alphabet = text(seed, sentences=3000)
cut = int(0.9 * len(letters))


def sample(part, n):
    starts = torch.randint(0, len(part) - LENGTH, (n,))
    rows = torch.stack([part[s : s + LENGTH + 1] for s in starts])
    return rows[:, :-1], rows[:, 1:]


model = LanguageModel(len(alphabet))
optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=0.01)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=STEPS, pct_start=0.15)
for step in range(1, STEPS + 1):
    model.train()
    x, y = sample(letters[:cut], 16)
    loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    scheduler.step()
    if step % 50 == 0:
        model.eval()
        with torch.no_grad():
            x, y = sample(letters[cut:], 128)
            val = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        print(f"step {step}: loss {loss.item():.3f}, val {val.item():.3f}")
