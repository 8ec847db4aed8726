"""A character model with bidirectional=True, "because it is better": it reads what it is to
predict.

The loss falls to nothing (silent). The place is the GRU. Exact: what comes later changes what
comes out earlier.
"""

import torch
from data import arguments, text
from torch import nn
from torch.utils.data import DataLoader

KIND = "future_leak"
ACCEPT = ("target_leak",)
PLACE = ("gru*", "")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
ids, alphabet = text(seed, 400)
rows = ids[: len(ids) // 21 * 21].view(-1, 21)


class Model(nn.Module):
    def __init__(self, n, width=24):
        super().__init__()
        self.embed = nn.Embedding(n, width)
        self.gru = nn.GRU(width, width, batch_first=True, bidirectional=not healthy)
        self.head = nn.Linear(width if healthy else 2 * width, n)

    def forward(self, chars):
        return self.head(self.gru(self.embed(chars))[0])


model = Model(len(alphabet))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(3):
    for chars in DataLoader(rows, batch_size=16, shuffle=True):
        optimizer.zero_grad()
        scores = model(chars[:, :-1])
        loss = criterion(scores.transpose(1, 2), chars[:, 1:])
        loss.backward()
        optimizer.step()
print(f"loss {loss.item():.3f}")
