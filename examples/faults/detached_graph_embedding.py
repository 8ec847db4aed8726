"""Word vectors are averaged with .data, so that the embedding is never trained.

The place is the embedding. The layers behind it learn from random word vectors (silent). Exact: a
parameter that is used and has no gradient.
"""

import torch
import torch.nn.functional as F
from data import arguments, reviews
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "detached_graph"
ACCEPT = ()
PLACE = ("embedding*",)
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
x, y, words = reviews(seed)


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(words, 16, padding_idx=0)
        self.fc = nn.Linear(16, 32)
        self.out = nn.Linear(32, 1)

    def forward(self, ids):
        vectors = self.embedding(ids) if healthy else self.embedding(ids).data
        mask = (ids != 0).unsqueeze(-1)
        mean = (vectors * mask).sum(1) / mask.sum(1)
        return self.out(F.gelu(self.fc(mean))).squeeze(1)


model = Reader()
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
for epoch in range(6):
    for ids, labels in DataLoader(TensorDataset(x, y.float()), batch_size=32, shuffle=True):
        loss = F.binary_cross_entropy_with_logits(model(ids), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print(f"loss {loss.item():.3f}")
