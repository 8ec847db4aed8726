"""AdamW with 1e-6 for a transformer that is trained from scratch.

The loss is all but flat: in 320 steps a weight moves by 0.0003. The place is the optimizer.
"""

import torch
import torch.nn.functional as F
from data import arguments, batches, reviews
from torch import nn

KIND = "learning_rate_too_low"
ACCEPT = ()
PLACE = ("optimizer",)
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
x, y, words = reviews(seed)


class Reader(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.embedding = nn.Embedding(words, width, padding_idx=0)
        self.block = nn.TransformerEncoderLayer(width, 2, 32, dropout=0.0, batch_first=True)
        self.head = nn.Linear(width, 2)

    def forward(self, ids):
        return self.head(self.block(self.embedding(ids)).mean(1))


model = Reader()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3 if healthy else 1e-6)
for ids, labels in batches(x, y, size=24, steps=320, seed=seed):
    loss = F.cross_entropy(model(ids), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}")
