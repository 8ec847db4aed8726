"""key_padding_mask the wrong way round: True where words are, which hides all of them.

The model looks at padding only and learns next to nothing. The place is the attention layer.
Exact: all of its attention is on padding.
"""

import torch
import torch.nn.functional as F
from data import arguments, batches, reviews
from torch import nn

KIND = "attention_mask_wrong"
ACCEPT = ()
PLACE = ("attention*",)
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
x, y, words = reviews(seed)
x = F.pad(x, (0, 2))


class Reader(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.embedding = nn.Embedding(words, width, padding_idx=0)
        self.question = nn.Parameter(torch.randn(1, 1, width) * 0.1)
        self.attention = nn.MultiheadAttention(width, 2, batch_first=True)
        self.head = nn.Linear(width, 2)

    def forward(self, ids):
        h = self.embedding(ids)
        mask = (ids == 0) if healthy else (ids != 0)
        found, _ = self.attention(
            self.question.expand(len(ids), -1, -1), h, h, key_padding_mask=mask
        )
        return self.head(found[:, 0])


model = Reader()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for ids, labels in batches(x, y, size=40, steps=320, seed=seed):
    loss = F.cross_entropy(model(ids), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}")
