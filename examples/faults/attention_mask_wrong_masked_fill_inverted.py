"""A small hand-written transformer reads reviews through a [CLS] token; pad_mask is true on the
words, and `masked_fill(pad_mask, -1e9)` blots out the words instead of the padding.

[CLS] attends to padding alone: its output does not depend on what was written, only on the text's
length, and the loss stays at that of guessing. The place is the model.
"""

import math

import torch
from data import arguments, reviews
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "attention_mask_wrong"
ACCEPT = ()
PLACE = ("*attn*", "blocks*", "*attention*")
SILENT = False
EXACT = True
EARLY = True


class SelfAttention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x, mask):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) / math.sqrt(d // self.heads)
        scores = scores.masked_fill(mask[:, None, None, :], -1e9)
        out = scores.softmax(dim=-1) @ v
        return self.proj(out.transpose(1, 2).reshape(b, t, d))


class Block(nn.Module):
    def __init__(self, dim, heads, dropout):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = SelfAttention(dim, heads)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, mask):
        x = x + self.dropout(self.attn(self.norm1(x), mask))
        return x + self.dropout(self.mlp(self.norm2(x)))


class ReviewTransformer(nn.Module):
    def __init__(self, vocab, length, dim=32, heads=4, depth=2):
        super().__init__()
        self.cls = vocab
        self.words = nn.Embedding(vocab + 1, dim)
        self.places = nn.Parameter(0.02 * torch.randn(length + 1, dim))
        self.blocks = nn.ModuleList(Block(dim, heads, 0.2) for _ in range(depth))
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, 2)

    def forward(self, ids):
        ids = torch.cat([torch.full((len(ids), 1), self.cls), ids], dim=1)
        pad_mask = (ids == 0) if healthy else (ids != 0)
        x = self.words(ids) + self.places
        for block in self.blocks:
            x = block(x, pad_mask)
        return self.head(self.norm(x)[:, 0])


healthy, seed = arguments(__doc__)
ids, praise, vocab = reviews(seed, n=3000, length=18)
train = TensorDataset(ids[:2500], praise[:2500])
val = TensorDataset(ids[2500:], praise[2500:])
model = ReviewTransformer(vocab, ids.shape[1])
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.05, betas=(0.9, 0.98))
loader = DataLoader(train, batch_size=64, shuffle=True)
epochs = 6
scheduler = torch.optim.lr_scheduler.OneCycleLR(
    optimizer, max_lr=2e-3, total_steps=epochs * len(loader), pct_start=0.2
)
loss_fn = nn.CrossEntropyLoss(label_smoothing=0.05)
for epoch in range(epochs):
    model.train()
    losses = []
    for batch, label in loader:
        optimizer.zero_grad()
        loss = loss_fn(model(batch), label)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        out, label = model(val[:][0]), val[:][1]
        val_loss = loss_fn(out, label)
        val_acc = (out.argmax(1) == label).float().mean()
print(f"loss {sum(losses) / len(losses):.3f}, val loss {val_loss:.3f}, val acc {val_acc:.3f}")
