"""An encoder with attention written around scaled_dot_product_attention decides which of two marks
comes first in a sequence of unequal length.

The padding mask is True at padding, as it was for nn.MultiheadAttention. For
scaled_dot_product_attention True means "may attend", so all attention goes to the padding and none
to the tokens. The first token, which the verdict is read from, learns nothing of the others; the
accuracy stays at chance. The place is the attention.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "attention_mask_wrong"
ACCEPT = ()
PLACE = ("blocks*", "input")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
PAD, START, RED, BLUE, LONGEST = 0, 1, 2, 3, 16


def sequences(n, g):
    """A start token, up to 13 fillers (4 to 11) with one red and one blue mark among them,
    padding; 1 if red is first.
    """
    ids = torch.full((n, LONGEST), PAD)
    y = torch.randint(0, 2, (n,), generator=g)
    for i in range(n):
        long = int(torch.randint(6, 15, (), generator=g))
        row = torch.randint(4, 12, (long,), generator=g)
        a, b = torch.randperm(long - 1, generator=g)[:2].add(1).sort().values.tolist()
        row[a], row[b] = (RED, BLUE) if y[i] else (BLUE, RED)
        row[0] = START
        ids[i, :long] = row
    return ids, y


class SelfAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x, mask):
        n, t, width = x.shape
        q, k, v = self.qkv(x).view(n, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask[:, None, None, :])
        return self.out(mixed.transpose(1, 2).reshape(n, t, width))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = SelfAttention(width, heads)
        self.mlp = nn.Sequential(
            nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )

    def forward(self, x, mask):
        x = x + self.attention(self.norm1(x), mask)
        return x + self.mlp(self.norm2(x))


class Encoder(nn.Module):
    def __init__(self, width=32, heads=4, layers=2):
        super().__init__()
        self.token, self.position = nn.Embedding(12, width), nn.Embedding(LONGEST, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 2)

    def forward(self, ids):
        mask = ids != PAD if healthy else ids == PAD
        x = self.token(ids) + self.position(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x, mask)
        return self.head(self.norm(x[:, 0]))


g = torch.Generator().manual_seed(seed)
ids, y = sequences(2400, g)
train = DataLoader(TensorDataset(ids[:2000], y[:2000]), batch_size=50, shuffle=True)
model = Encoder()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=12 * len(train))
for epoch in range(12):
    model.train()
    losses = []
    for xb, yb in train:
        loss = F.cross_entropy(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        out = model(ids[2000:])
    right = (out.argmax(1) == y[2000:]).float().mean().item()
    print(
        f"epoch {epoch:2d} train {sum(losses) / len(losses):.4f}"
        f" val {F.cross_entropy(out, y[2000:]).item():.4f}"
        f" accuracy {right:.3f}"
    )
