"""Attention pooling over padded reviews; the padding mask is the wrong way round.

Of the two conventions (True = keep, True = hide) the author mixed them up: masked_fill hides the
words and leaves the padding. The net sees only padding and stays at chance. The place is the
attention ("pool"). The twin hides the padding.
"""

import torch
from data import arguments, batches, reviews
from torch import nn

KIND = "attention_mask_wrong"
ACCEPT = ()
PLACE = ("pool", "input*")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
x, y, vocabulary = reviews(seed)
x, x_val, y, y_val = x[:900], x[900:], y[:900].float(), y[900:].float()


class AttentionPool(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.key = nn.Linear(dim, dim)
        self.value = nn.Linear(dim, dim)
        self.query = nn.Parameter(torch.randn(dim) / dim**0.5)

    def forward(self, h, mask):
        scores = self.key(h) @ self.query / h.shape[-1] ** 0.5
        scores = scores.masked_fill(mask, -1e9)
        weights = scores.softmax(-1)
        return (weights.unsqueeze(-1) * self.value(h)).sum(1)


class Classifier(nn.Module):
    def __init__(self, dim=24):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, dim, padding_idx=0)
        self.pool = AttentionPool(dim)
        self.out = nn.Sequential(nn.Linear(dim, 24), nn.ReLU(), nn.Linear(24, 1))

    def forward(self, tokens):
        mask = tokens == 0 if healthy else tokens != 0
        return self.out(self.pool(self.embed(tokens), mask)).squeeze(-1)


model = Classifier()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
loss_fn = nn.BCEWithLogitsLoss()
for step, (tokens, labels) in enumerate(batches(x, y, size=32, steps=240, seed=seed)):
    optimizer.zero_grad()
    loss = loss_fn(model(tokens), labels)
    loss.backward()
    optimizer.step()
    if (step + 1) % 40 == 0:
        model.eval()
        with torch.no_grad():
            logits = model(x_val)
            accuracy = ((logits > 0) == (y_val > 0.5)).float().mean().item()
            val_loss = loss_fn(logits, y_val).item()
        model.train()
        print(f"{step + 1} loss {loss.item():.4f} val loss {val_loss:.4f} acc {accuracy:.3f}")
