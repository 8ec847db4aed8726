"""A bidirectional GRU fills in masked characters, as BERT does, and looks to both sides.

It may see the future, and must: the characters asked for are replaced in the input
and the loss counts only those.
"""

import torch
import torch.nn.functional as F
from data import arguments, text
from torch import nn

ODD = "a sequence model over characters that sees the future"

_, seed = arguments(__doc__)
ids, alphabet = text(seed, 800)
MASK, T, DIM = len(alphabet), 20, 48
cut = int(0.85 * len(ids))


class Filler(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(len(alphabet) + 1, 24)
        self.gru = nn.GRU(24, DIM, batch_first=True, bidirectional=True)
        self.head = nn.Sequential(nn.Linear(2 * DIM, DIM), nn.ReLU(), nn.Linear(DIM, len(alphabet)))

    def forward(self, tokens):
        return self.head(self.gru(self.embed(tokens))[0])


def batch(source, n=32):
    windows = torch.stack([source[i : i + T] for i in torch.randint(0, len(source) - T, (n,))])
    hidden = torch.rand(windows.shape) < 0.15
    return windows.masked_fill(hidden, MASK), windows.masked_fill(~hidden, -100)


def loss_of(model, source, n=32):
    tokens, targets = batch(source, n)
    return F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten(), ignore_index=-100)


model = Filler()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=350)
for step in range(1, 351):
    loss = loss_of(model, ids[:cut])
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    schedule.step()
    if step % 70 == 0:
        model.eval()
        with torch.no_grad():
            val = loss_of(model, ids[cut:], 150).item()
        model.train()
        print(f"step {step}: loss {loss.item():.4f} val loss {val:.4f}")
