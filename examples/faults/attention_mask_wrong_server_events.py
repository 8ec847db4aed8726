"""Tells from a server's event log which service will fail; the padding mask is the wrong way round.

The encoder was first written with nn.MultiheadAttention, whose key_padding_mask is True where a
key is to be ignored. For speed it was moved to scaled_dot_product_attention, whose boolean mask is
True where a key takes part, and the mask was passed on as it was: the log looks at padding only.
The place is the attention of both layers. The twin hands the inverse of the mask over.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "attention_mask_wrong"
ACCEPT = ()
PLACE = ("layers.*", "*attn*", "layers", "input*")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
EVENTS, LENGTH, SERVICES = 60, 32, 5


def make_logs(n, g):
    """Event 0 is padding, 1 the summary token; 2..6 are warnings of the five services."""
    x = torch.randint(7, EVENTS, (n, LENGTH), generator=g)
    y = torch.randint(0, SERVICES, (n,), generator=g)
    lengths = torch.randint(12, LENGTH - 1, (n,), generator=g)
    for row in range(n):
        spots = 1 + torch.randperm(int(lengths[row]) - 1, generator=g)[:3]
        x[row, spots] = y[row] + 2
        x[row, spots[0]] = torch.randint(2, 7, (1,), generator=g)
        x[row, lengths[row] :] = 0
    x[:, 0] = 1
    return x, y


class Layer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x, mask):
        b, t, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v, attn_mask=mask[:, None, None, :])
        x = x + self.out(a.transpose(1, 2).reshape(b, t, d))
        return x + self.mlp(self.norm2(x))


class LogClassifier(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.embed = nn.Embedding(EVENTS, dim, padding_idx=0)
        self.position = nn.Parameter(0.02 * torch.randn(LENGTH, dim))
        self.layers = nn.ModuleList([Layer(dim, 4) for _ in range(2)])
        self.head = nn.Linear(dim, SERVICES)

    def forward(self, ids):
        padding = ids == 0
        mask = ~padding if healthy else padding
        x = self.embed(ids) + self.position
        for layer in self.layers:
            x = layer(x, mask)
        return self.head(x[:, 0])


g = torch.Generator().manual_seed(seed)
x, y = make_logs(1400, g)
x_val, y_val = make_logs(400, g)
model = LogClassifier()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
for epoch in range(5):
    model.train()
    total = 0.0
    for rows in torch.randperm(len(x), generator=g).split(32):
        loss = F.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows)
    model.eval()
    with torch.no_grad():
        accuracy = (model(x_val).argmax(1) == y_val).float().mean()
    print(f"epoch {epoch}: loss {total / len(x):.3f}, validation accuracy {accuracy:.3f}")
