"""A language model without a causal mask: each position sees the character that it is to predict.

The loss falls far below what the text allows (silent). The place is the attention. Exact: what
comes later changes what comes out earlier.
"""

import torch
import torch.nn.functional as F
from data import arguments, batches, text
from torch import nn

KIND = "future_leak"
ACCEPT = ("target_leak",)
PLACE = ("block*", "")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
ids, alphabet = text(seed, 500)
rows = ids[: len(ids) // 25 * 25].view(-1, 25)


class Model(nn.Module):
    def __init__(self, n, width=32, length=24):
        super().__init__()
        self.token = nn.Embedding(n, width)
        self.position = nn.Parameter(torch.randn(length, width) * 0.1)
        self.block = nn.TransformerEncoderLayer(width, 2, 64, dropout=0.0, batch_first=True)
        self.head = nn.Linear(width, n)
        mask = nn.Transformer.generate_square_subsequent_mask(length)
        self.register_buffer("mask", mask if healthy else torch.zeros_like(mask))

    def forward(self, chars):
        h = self.token(chars) + self.position
        return self.head(self.block(h, src_mask=self.mask))


model = Model(len(alphabet))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for (chars,) in batches(rows, size=24, steps=220, seed=seed):
    loss = F.cross_entropy(model(chars[:, :-1]).flatten(0, 1), chars[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}")
