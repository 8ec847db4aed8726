"""Reviews padded on the left, and a mask that keeps the first `length` places, as if padded on the
right.

Short reviews are read as padding only, of long ones the end is cut off. Much of the praise goes
unseen; the loss stays high. The place is the attention.
"""

import torch
from data import arguments, reviews
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "attention_mask_wrong"
ACCEPT = ()
PLACE = ("*attention*", "blocks*", "")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
PAD, LENGTH, WIDTH = 0, 18, 32


def left_pad(rows):
    out = torch.full((len(rows), LENGTH), PAD)
    for to, row in zip(out, rows, strict=True):
        said = row[row != PAD]
        to[LENGTH - len(said) :] = said
    return out, (out != PAD).sum(1)


def padding_mask(lengths):
    """True where there is nothing to attend to."""
    places = torch.arange(LENGTH)
    if healthy:
        return places < LENGTH - lengths.unsqueeze(1)
    return places >= lengths.unsqueeze(1)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1 = nn.LayerNorm(WIDTH)
        self.attention = nn.MultiheadAttention(WIDTH, 4, batch_first=True)
        self.norm2 = nn.LayerNorm(WIDTH)
        self.mlp = nn.Sequential(
            nn.Linear(WIDTH, 64), nn.GELU(), nn.Linear(64, WIDTH), nn.Dropout(0.1)
        )

    def forward(self, h, hidden):
        n = self.norm1(h)
        h = h + self.attention(n, n, n, key_padding_mask=hidden, need_weights=False)[0]
        return h + self.mlp(self.norm2(h))


class Reader(nn.Module):
    def __init__(self, words):
        super().__init__()
        self.tokens = nn.Embedding(words, WIDTH, padding_idx=PAD)
        self.places = nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.ModuleList([Block()])
        self.verdict = nn.Linear(WIDTH, 2)

    def forward(self, rows, lengths):
        hidden = padding_mask(lengths)
        h = 0.5 * (self.tokens(rows) + self.places.weight)
        for block in self.blocks:
            h = block(h, hidden)
        return self.verdict(h[:, -1])  # the last word is always a word


rows, labels, words = reviews(seed, n=1600)
rows, lengths = left_pad(rows)
loader = DataLoader(
    TensorDataset(rows[:1200], lengths[:1200], labels[:1200]), batch_size=50, shuffle=True
)
model = Reader(words)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.1)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, total_steps=6 * len(loader))
for epoch in range(6):
    model.train()
    for batch, length, label in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(batch, length), label)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    model.eval()
    with torch.no_grad():
        out = model(rows[1200:], lengths[1200:])
        val = nn.functional.cross_entropy(out, labels[1200:]).item()
        accuracy = (out.argmax(1) == labels[1200:]).float().mean().item()
print(f"loss {loss.item():.3f}, validation loss {val:.3f}, accuracy {accuracy:.3f}")
