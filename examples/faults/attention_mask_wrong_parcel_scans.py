"""Predicts from a parcel's scans whether it will be late; the attention looks at the padding only.

The layer was moved from nn.MultiheadAttention, whose key_padding_mask is True where a place is to
be left out, to scaled_dot_product_attention, whose attn_mask is True where a place takes part. The
mask came along as it was. Nothing complains, since every row has at least one place of padding.
The place is the attention of the encoder.
The twin turns the mask round.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "attention_mask_wrong"
ACCEPT = ()
PLACE = ("encoder.attention", "encoder", "encoder.attention.qkv", "input*")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)

PAD, LENGTH, DEPOTS = 0, 18, 24


def parcels(n, generator):
    """Scans (depot numbers); late when depot 3 is passed and depot 7 or 11 too."""
    scans = torch.randint(1, DEPOTS + 1, (n, LENGTH), generator=generator)
    lengths = torch.randint(5, LENGTH, (n,), generator=generator)
    first, second = 3, torch.where(torch.rand(n, generator=generator) < 0.5, 7, 11)
    rows = torch.arange(n)
    for depot, share in ((torch.full((n,), first), 0.7), (second, 0.6)):
        chosen = torch.rand(n, generator=generator) < share
        where = (torch.rand(n, generator=generator) * lengths).long()
        scans[rows[chosen], where[chosen]] = depot[chosen]
    scans[torch.arange(LENGTH) >= lengths[:, None]] = PAD
    has = (scans == 3).any(1) & ((scans == 7) | (scans == 11)).any(1)
    return scans, has.float()


class SelfAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x, mask):
        n, length, width = x.shape
        q, k, v = self.qkv(x).view(n, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask[:, None, None, :])
        return self.out(mixed.transpose(1, 2).reshape(n, length, width))


class Encoder(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.depot = nn.Embedding(DEPOTS + 1, width, padding_idx=PAD)
        self.start = nn.Parameter(torch.randn(width) * 0.1)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = SelfAttention(width, 4)
        self.feed = nn.Sequential(nn.Linear(width, 64), nn.GELU(), nn.Linear(64, width))

    def forward(self, scans):
        padding = scans == PAD
        mask = ~padding if healthy else padding
        x = self.depot(scans)
        x = torch.cat([self.start.expand(len(x), 1, -1), x], 1)
        mask = torch.cat([mask.new_full((len(x), 1), True), mask], 1)
        x = x + self.attention(self.norm1(x), mask)
        x = x + self.feed(self.norm2(x))
        return x[:, 0]


class LatePredictor(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = Encoder()
        self.head = nn.Linear(32, 1)

    def forward(self, scans):
        return self.head(self.encoder(scans)).squeeze(-1)


g = torch.Generator().manual_seed(seed)
x, y = parcels(3000, g)
x_val, y_val = parcels(800, g)
model = LatePredictor()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
for epoch in range(10):
    model.train()
    total = 0.0
    order = torch.randperm(len(x))
    for rows in order.split(64):
        loss = F.binary_cross_entropy_with_logits(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows)
    model.eval()
    with torch.no_grad():
        right = ((model(x_val) > 0) == (y_val > 0.5)).float().mean().item()
    print(f"epoch {epoch}: loss {total / len(x):.3f}, validation accuracy {right:.3f}")
