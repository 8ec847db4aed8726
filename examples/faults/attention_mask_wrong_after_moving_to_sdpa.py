"""A home-made attention layer moved from nn.MultiheadAttention to scaled_dot_product_attention; the
mask that came along is True where there is padding.

The old module leaves True out, the new function attends to True alone: the summary token looks at
nothing but padding and the answer is a guess. The place is the attention layer's mask.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "attention_mask_wrong"
ACCEPT = ()
PLACE = ("*att*", "block*", "")
SILENT = True
EXACT = False
EARLY = True

LETTERS, LENGTH, PAD, SUMMARY = 20, 14, 20, 21


class Attention(nn.Module):
    def __init__(self, size, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(size, 3 * size)
        self.out = nn.Linear(size, size)

    def forward(self, z, mask):
        b, n, d = z.shape
        q, k, v = self.qkv(z).view(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask[:, None, None, :])
        return self.out(mixed.transpose(1, 2).reshape(b, n, d))


class Reader(nn.Module):
    def __init__(self, size=32):
        super().__init__()
        self.tokens = nn.Embedding(LETTERS + 2, size)
        self.attention = nn.ModuleList(Attention(size, 4) for _ in range(2))
        self.norms = nn.ModuleList(nn.LayerNorm(size) for _ in range(2))
        self.feed = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(size), nn.Linear(size, 64), nn.GELU(), nn.Linear(64, size))
            for _ in range(2)
        )
        self.answer = nn.Linear(size, 3)

    def forward(self, tokens, mask):
        z = self.tokens(tokens)
        for norm, attention, feed in zip(self.norms, self.attention, self.feed, strict=False):
            z = z + attention(norm(z), mask)
            z = z + feed(z)
        return self.answer(z[:, 0])


def proteins(n):
    """Sequences of letters; the class is which of three groups of letters is the most frequent."""
    length = torch.randint(6, LENGTH - 1, (n, 1))
    favoured = torch.randint(0, 3, (n, 1))
    letters = torch.randint(0, LETTERS, (n, LENGTH))
    own = favoured * 5 + torch.randint(0, 5, (n, LENGTH))
    letters = torch.where(torch.rand(n, LENGTH) < 0.55, own, letters)
    letters = torch.where(torch.arange(LENGTH) < length, letters, PAD)
    group = torch.where(letters < 15, letters // 5, 3)
    kind = F.one_hot(group, 4)[:, :, :3].sum(1).argmax(1)
    return torch.cat([torch.full((n, 1), SUMMARY), letters], 1), kind


healthy, _ = arguments(__doc__)
tokens, kind = proteins(2500)
padding = tokens == PAD
mask = ~padding if healthy else padding
model = Reader()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
for epoch in range(5):
    model.train()
    for rows in torch.randperm(2000).split(50):
        loss = F.cross_entropy(model(tokens[rows], mask[rows]), kind[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        scores = model(tokens[2000:], mask[2000:])
        val = F.cross_entropy(scores, kind[2000:])
        accuracy = (scores.argmax(1) == kind[2000:]).float().mean()
    print(f"epoch {epoch}: loss {loss.item():.3f}  val {val:.3f}  accuracy {accuracy:.3f}")
