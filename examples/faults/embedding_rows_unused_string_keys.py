"""A recommender foresees how a reader rates an article from the embeddings of both. The articles'
numbers are looked up in a dictionary; it is keyed by int, and the log gives them as text.

No article is ever found, so each gets row 0, the one kept for unknown articles. The loss falls a
little, for the readers differ, yet nothing about the articles is learned. The place is the
articles' embedding.
"""

import csv
import io
import random

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "embedding_rows_unused"
ACCEPT = ()
PLACE = ("article*", "input")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
READERS, ARTICLES, UNKNOWN = 120, 150, 0


def write_log(entries):
    """A CSV of reader, article number, rating as the site's export gives it."""
    g = torch.Generator().manual_seed(seed)
    taste, topic = torch.randn(READERS, 3, generator=g), torch.randn(ARTICLES, 3, generator=g)
    quality, mood = (
        0.8 * torch.randn(ARTICLES, generator=g),
        0.5 * torch.randn(READERS, generator=g),
    )
    numbers = random.sample(range(100_000, 900_000), ARTICLES)
    file = io.StringIO()
    writer = csv.writer(file)
    for _ in range(entries):
        r, a = random.randrange(READERS), random.randrange(ARTICLES)
        rating = 3 + 0.5 * (taste[r] @ topic[a]) + quality[a] + mood[r] + 0.3 * random.gauss(0, 1)
        writer.writerow([r, numbers[a], f"{rating.item():.2f}"])
    file.seek(0)
    return file, numbers


def load(file, numbers):
    index = {number: row for row, number in enumerate(numbers, start=1)}
    readers, articles, ratings = [], [], []
    for reader, article, rating in csv.reader(file):
        key = int(article) if healthy else article
        readers.append(int(reader))
        articles.append(index.get(key, UNKNOWN))
        ratings.append(float(rating))
    return torch.tensor(readers), torch.tensor(articles), torch.tensor(ratings)


class Recommender(nn.Module):
    def __init__(self, width=6):
        super().__init__()
        self.reader = nn.Embedding(READERS, width)
        self.article = nn.Embedding(ARTICLES + 1, width)
        self.reader_bias = nn.Embedding(READERS, 1)
        self.article_bias = nn.Embedding(ARTICLES + 1, 1)
        for table in (self.reader, self.article, self.reader_bias, self.article_bias):
            nn.init.normal_(table.weight, std=0.1)

    def forward(self, r, a):
        return (self.reader(r) * self.article(a)).sum(1) + (
            self.reader_bias(r) + self.article_bias(a)
        ).squeeze(1)


readers, articles, ratings = load(*write_log(14000))
cut = 11000
ratings = (ratings - ratings[:cut].mean()) / ratings[:cut].std()
train = DataLoader(
    TensorDataset(readers[:cut], articles[:cut], ratings[:cut]), batch_size=128, shuffle=True
)
model = Recommender()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 4, 0.4)
mse = nn.MSELoss()
for epoch in range(12):
    total = 0.0
    for r, a, y in train:
        loss = mse(model(r, a), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / len(train)
    schedule.step()
    with torch.no_grad():
        val = mse(model(readers[cut:], articles[cut:]), ratings[cut:]).item()
    print(f"epoch {epoch:2d} train {total:.4f} val {val:.4f}")
