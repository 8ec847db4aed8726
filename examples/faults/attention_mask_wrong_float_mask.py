"""Clips of sound of several lengths are told apart; the mask goes into SDPA as float instead of as
bool.

A bool mask says who takes part, a float mask is added to the scores: the frames behind a clip's end
are only a factor of e lighter than the clip's own. The loader uses its buffer again, so these
frames hold what is left of the clip before. The place is the attention. The loss falls all the same
(silent), but not as far. Exact: weight falls on what the mask excludes.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "attention_mask_wrong"
ACCEPT = ()
PLACE = ("blocks*", "input*")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
FRAMES, BANDS, KINDS = 40, 12, 4
r = torch.Generator().manual_seed(100 + seed)
voices = torch.randn(KINDS, BANDS, generator=r)


def clips(n):
    y = torch.randint(0, KINDS, (n,), generator=r)
    length = torch.randint(6, 16, (n,), generator=r)
    buffer = torch.randn(n, FRAMES, BANDS, generator=r)
    for i in range(n):
        before = torch.randint(0, KINDS, (1,), generator=r)[0]  # the clip that was here before
        for t in torch.randint(0, FRAMES, (14,), generator=r).tolist():
            buffer[i, t] += 2.5 * voices[before]
        end = int(length[i])
        buffer[i, :end] = torch.randn(end, BANDS, generator=r)
        for t in torch.randint(0, end, (3,), generator=r).tolist():
            buffer[i, t] += 2.5 * voices[y[i]]
    keep = torch.arange(FRAMES)[None] < length[:, None]
    return buffer / 1.5, keep, y


class SelfAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x, mask):
        b, t, w = x.shape
        q, k, v = (
            part.view(b, t, self.heads, -1).transpose(1, 2) for part in self.qkv(x).chunk(3, -1)
        )
        mask = mask[:, None, None, :]
        if not healthy:
            mask = mask.to(q.dtype)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.out(y.transpose(1, 2).reshape(b, t, w))


class Block(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = SelfAttention(width, 4)
        self.mlp = nn.Sequential(nn.Linear(width, 64), nn.GELU(), nn.Linear(64, width))

    def forward(self, x, mask):
        x = x + self.attention(self.norm1(x), mask)
        return x + self.mlp(self.norm2(x))


class Listener(nn.Module):
    def __init__(self):
        super().__init__()
        self.enter = nn.Linear(BANDS, 32)
        self.cls = nn.Parameter(torch.zeros(1, 1, 32))
        self.blocks = nn.ModuleList([Block(), Block()])
        self.head = nn.Linear(32, KINDS)

    def forward(self, x, mask):
        x = torch.cat([self.cls.expand(len(x), -1, -1), self.enter(x)], 1)
        mask = torch.cat([mask.new_ones(len(x), 1), mask], 1)
        for block in self.blocks:
            x = block(x, mask)
        return self.head(x[:, 0])


x, keep, y = clips(1600)
x_val, keep_val, y_val = clips(400)
model = Listener()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
for epoch in range(5):
    model.train()
    for rows in torch.randperm(len(x), generator=r).split(50):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x[rows], keep[rows]), y[rows])
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        right = (model(x_val, keep_val).argmax(1) == y_val).float().mean().item()
    print(f"epoch {epoch}: loss {loss.item():.3f}, held-out accuracy {right:.3f}")
