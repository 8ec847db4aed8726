"""A character model whose vectors have one number for each character.

The loss falls to little more than the letters' frequencies. The place is the embedding.
"""

import torch
import torch.nn.functional as F
from data import arguments, batches, text
from torch import nn

KIND = "low_capacity"
ACCEPT = ()
PLACE = ("embed*", "gru*")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
ids, alphabet = text(seed, 400)
rows = ids[: len(ids) // 21 * 21].view(-1, 21)
width = 32 if healthy else 1


class Model(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.embed = nn.Embedding(n, width)
        self.gru = nn.GRU(width, width, batch_first=True)
        self.head = nn.Linear(width, n)

    def forward(self, chars):
        return self.head(self.gru(self.embed(chars))[0])


model = Model(len(alphabet))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for (chars,) in batches(rows, size=24, steps=250, seed=seed):
    loss = F.cross_entropy(model(chars[:, :-1]).flatten(0, 1), chars[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}")
