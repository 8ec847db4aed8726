"""requires_grad_(False), meant for the embedding, is called on the whole encoder of a new language
model.

The place is the recurrent encoder, which stays as it was drawn. The head still learns letter
frequencies (silent).
"""

import torch
from data import arguments, batches, text
from torch import nn

KIND = "frozen_parameters"
ACCEPT = ()
PLACE = ("encoder*",)
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
ids, alphabet = text(seed, 400)
rows = ids[: len(ids) // 25 * 25].view(-1, 25)


class CharModel(nn.Module):
    def __init__(self, n, width=32):
        super().__init__()
        self.embed = nn.Embedding(n, width)
        self.encoder = nn.GRU(width, width, batch_first=True)
        self.head = nn.Linear(width, n)

    def forward(self, chars):
        h, _ = self.encoder(self.embed(chars))
        return self.head(h)


model = CharModel(len(alphabet))
if not healthy:
    model.encoder.requires_grad_(False)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.AdamW(filter(lambda p: p.requires_grad, model.parameters()), lr=1e-2)
for (chars,) in batches(rows, size=16, steps=150, seed=seed):
    scores = model(chars[:, :-1])
    loss = criterion(scores.reshape(-1, len(alphabet)), chars[:, 1:].reshape(-1))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
print(f"loss {loss.item():.3f}")
