"""Reviews by hashed words: a table of 20,000 rows for a vocabulary of some 160 words.

The hashing trick needs no vocabulary; the table is large so that two words rarely meet. Nearly all
rows stay as they were drawn, which costs memory and nothing else.
"""

import zlib

import torch
from data import arguments, reviews
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = "99 % of the embedding rows never get a gradient; sparse gradients, two optimizers"

_, seed = arguments(__doc__)

ROWS = 20_000
tokens, y, vocabulary = reviews(seed, n=2000)
slot = torch.tensor(
    [0] + [1 + zlib.crc32(f"word{i}".encode()) % (ROWS - 1) for i in range(1, vocabulary)]
)
x = slot[tokens]
x_train, y_train, x_val, y_val = x[:1600], y[:1600].float(), x[1600:], y[1600:].float()
loader = DataLoader(TensorDataset(x_train, y_train), batch_size=40, shuffle=True)


class Reviewer(nn.Module):
    def __init__(self, dim=12):
        super().__init__()
        self.table = nn.EmbeddingBag(ROWS, dim, mode="mean", sparse=True, padding_idx=0)
        self.head = nn.Sequential(nn.Linear(dim, 12), nn.ReLU(), nn.Linear(12, 1))

    def forward(self, x):
        return self.head(self.table(x)).squeeze(1)


model = Reviewer()
nn.init.normal_(model.table.weight, std=0.1)
sparse = torch.optim.SparseAdam(model.table.parameters(), lr=3e-3)
dense = torch.optim.Adam(model.head.parameters(), lr=3e-3)
criterion = nn.BCEWithLogitsLoss()
for epoch in range(10):
    model.train()
    losses = []
    for xb, yb in loader:
        loss = criterion(model(xb), yb)
        sparse.zero_grad()
        dense.zero_grad()
        loss.backward()
        sparse.step()
        dense.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        out = model(x_val)
    accuracy = ((out > 0) == (y_val > 0)).float().mean()
    print(
        f"epoch {epoch}: train {sum(losses) / len(losses):.3f} val {criterion(out, y_val):.3f} "
        f"accuracy {accuracy:.3f}"
    )
