"""A factorisation model predicts book ratings; every book id is hashed into 12 buckets of a table
with 600 rows.

The bucket number of a first try on a toy catalogue was left in the id map, so that 98 % of the
rows of the book table never get a gradient and 50 books share a row. The place is the map of ids
(loader) and books.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "embedding_rows_unused"
ACCEPT = ()
PLACE = ("books*", "loader", "input*")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
READERS, BOOKS = 500, 600
BUCKETS = BOOKS if healthy else 12


def ratings(n, g):
    """Stars by bias and taste in three dimensions; book codes are 10,000, 10,007, ..."""
    reader_bias = 0.3 * torch.randn(READERS, generator=g)
    book_bias = 0.6 * torch.randn(BOOKS, generator=g)
    taste = torch.randn(READERS, 3, generator=g)
    theme = torch.randn(BOOKS, 3, generator=g) * 0.4
    reader = torch.randint(0, READERS, (n,), generator=g)
    book = (torch.rand(n, generator=g) ** 1.5 * BOOKS).long()
    stars = 3.4 + reader_bias[reader] + book_bias[book] + (taste[reader] * theme[book]).sum(1)
    stars = (stars + 0.3 * torch.randn(n, generator=g)).clamp(1, 5)
    return reader, 10_000 + 7 * book, stars


def book_row(code):
    return ((code - 10_000) // 7) % BUCKETS


class Recommender(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.readers = nn.Embedding(READERS, width)
        self.books = nn.Embedding(BOOKS, width)
        self.reader_bias = nn.Embedding(READERS, 1)
        self.books_bias = nn.Embedding(BOOKS, 1)
        self.mean = nn.Parameter(torch.tensor(3.0))
        for table in (self.readers, self.books, self.reader_bias, self.books_bias):
            nn.init.normal_(table.weight, std=0.1)

    def forward(self, reader, row):
        bias = self.reader_bias(reader) + self.books_bias(row)
        return self.mean + bias.squeeze(1) + (self.readers(reader) * self.books(row)).sum(1)


g = torch.Generator().manual_seed(seed)
reader, code, stars = ratings(40_000, g)
data = TensorDataset(reader, book_row(code), stars)
train, val = torch.utils.data.random_split(data, [34_000, 6_000], generator=g)
train_loader = DataLoader(train, batch_size=400, shuffle=True)
val_loader = DataLoader(val, batch_size=2000)
model = Recommender()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3, weight_decay=1e-5)
for epoch in range(10):
    model.train()
    for reader, row, stars in train_loader:
        loss = nn.functional.mse_loss(model(reader, row), stars)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        parts = [nn.functional.mse_loss(model(r, b), s).item() for r, b, s in val_loader]
    print(
        f"epoch {epoch}: train mse {loss.item():.3f}, validation mse {sum(parts) / len(parts):.3f}"
    )
