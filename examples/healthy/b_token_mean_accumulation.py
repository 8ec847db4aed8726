"""A tagger of letters (does a word end here, a sentence, or neither?) accumulates four
micro-batches of rows of different lengths.

Their losses are sums, and are divided by the letters of all four together. No loss is divided by
the number of micro-batches, each backward finds gradients of the one before, and the losses of the
micro-batches are of very different sizes; the gradient is exactly the mean.
"""

import torch
from data import arguments, text
from torch import nn
from torch.nn import functional as F

ODD = "sums accumulate over micro-batches that are not divided by their number"

_, seed = arguments(__doc__)


class Tagger(nn.Module):
    def __init__(self, letters, width=32):
        super().__init__()
        self.embed = nn.Embedding(letters + 1, 16, padding_idx=letters)
        self.gru = nn.GRU(16, width, batch_first=True)
        self.out = nn.Linear(width, 3)

    def forward(self, ids):
        return self.out(self.gru(self.embed(ids))[0])


ids, alphabet = text(seed, 900)
space, stop, pad = alphabet.index(" "), alphabet.index("."), len(alphabet)
after = torch.cat([ids[1:], ids[:1]])
tags = torch.where(after == stop, 2, torch.where(after == space, 1, 0))
g, rows, at = torch.Generator().manual_seed(seed), [], 0
while at < len(ids) - 60:
    n = int(torch.randint(6, 60, (1,), generator=g))
    rows.append((ids[at : at + n], tags[at : at + n]))
    at += n
cut = int(0.85 * len(rows))
train, held = rows[:cut], rows[cut:]


def collate(part):
    x = nn.utils.rnn.pad_sequence([a for a, _ in part], batch_first=True, padding_value=pad)
    return x, nn.utils.rnn.pad_sequence([b for _, b in part], batch_first=True, padding_value=-100)


def summed(model, x, y):
    return F.cross_entropy(model(x).flatten(0, 1), y.flatten(), ignore_index=-100, reduction="sum")


model = Tagger(len(alphabet))
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
x_val, y_val = collate(held)
for epoch in range(8):
    order = torch.randperm(len(train)).tolist()
    for i in range(0, len(order) - 63, 64):
        micro = [collate([train[k] for k in order[j : j + 16]]) for j in range(i, i + 64, 16)]
        count = sum((y >= 0).sum() for _, y in micro)
        optimizer.zero_grad()
        total = 0.0
        for x, y in micro:
            loss = summed(model, x, y) / count
            loss.backward()
            total += loss.item()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        val = summed(model, x_val, y_val) / (y_val >= 0).sum()
    model.train()
    print(f"epoch {epoch}: train {total:.4f} val {val.item():.4f}")
