"""A position table is made as `nn.Parameter(...).unsqueeze(0)` in a small transformer.

The view is a plain tensor and no parameter: the table is not registered, not trained and not
saved. The twin makes the parameter last. The place is the model or the table.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "unregistered_parameters"
ACCEPT = ("parameters_not_in_optimizer",)
PLACE = ("", "positions", "optimizer")
SILENT = True
EXACT = True
EARLY = True

VOCABULARY, LENGTH, DIM = 12, 8, 32
healthy, seed = arguments(__doc__)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.attention = nn.MultiheadAttention(DIM, 4, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(DIM, 4 * DIM), nn.GELU(), nn.Linear(4 * DIM, DIM))

    def forward(self, x):
        h = self.norm1(x)
        x = x + self.attention(h, h, h, need_weights=False)[0]
        return x + self.mlp(self.norm2(x))


class Sorter(nn.Module):
    """Gives back the sequence in reversed order."""

    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, DIM)
        if healthy:
            self.positions = nn.Parameter((torch.randn(LENGTH, DIM) * 0.05).unsqueeze(0))
        else:
            self.positions = nn.Parameter(torch.randn(LENGTH, DIM) * 0.05).unsqueeze(0)
        self.blocks = nn.Sequential(Block(), Block())
        self.head = nn.Sequential(nn.LayerNorm(DIM), nn.Linear(DIM, VOCABULARY))

    def forward(self, ids):
        return self.head(self.blocks(self.tokens(ids) + self.positions))


model = Sorter()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, 1.0, total_iters=30)
g = torch.Generator().manual_seed(seed)
for step in range(1, 601):
    ids = torch.randint(0, VOCABULARY, (64, LENGTH), generator=g)
    logits = model(ids)
    loss = F.cross_entropy(logits.flatten(0, 1), ids.flip(1).flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    if step % 50 == 0:
        right = (logits.argmax(-1) == ids.flip(1)).float().mean().item()
        print(f"step {step}: loss {loss.item():.3f}, right {right:.3f}")
