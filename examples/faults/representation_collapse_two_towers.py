"""A two-tower article recommender trained by cosine on clicked pairs only, without any negatives.

The person has a log of clicks, so each pair in it is a positive one, and pulls the two towers
together with 1 - cos. Nothing pushes others apart: all readers and all articles end up in one
direction, the loss is zero and all get the same list. The place is the loss.
"""

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "representation_collapse"
ACCEPT = ("wrong_loss",)
PLACE = ("loss", "readers*", "articles*", "model")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

READERS, ARTICLES, TOPICS, WORDS = 300, 200, 8, 40
NEGATIVES = 8 if healthy else 0


class ClickLog:
    """Readers with two interests each; articles with a topic, words and a rubric."""

    def __init__(self, rng):
        self.topic = rng.integers(0, TOPICS, ARTICLES)
        word_use = rng.dirichlet(np.full(WORDS, 0.15), TOPICS)
        counts = np.stack([rng.multinomial(30, word_use[t]) for t in self.topic])
        words = np.log1p(counts)
        self.words = torch.tensor((words - words.mean(0)) / (words.std(0) + 1e-6)).float()
        interests = np.stack([rng.choice(TOPICS, 2, replace=False) for _ in range(READERS)])
        taste = np.full((READERS, ARTICLES), 0.06)
        for reader, liked in enumerate(interests):
            taste[reader, np.isin(self.topic, liked)] = 1.0
        taste /= taste.sum(1, keepdims=True)
        clicks = [rng.choice(ARTICLES, 24, replace=False, p=row) for row in taste]
        self.train = [(r, a) for r, row in enumerate(clicks) for a in row[:18]]
        self.held_out = [row[18:] for row in clicks]
        self.clicked = torch.zeros(READERS, ARTICLES, dtype=torch.bool)
        for r, a in self.train:
            self.clicked[r, a] = True


class Pairs(Dataset):
    def __init__(self, log):
        self.log = log

    def __len__(self):
        return len(self.log.train)

    def __getitem__(self, i):
        reader, article = self.log.train[i]
        others = torch.randint(0, ARTICLES, (NEGATIVES,))
        return reader, article, others


class ReaderTower(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.embedding = nn.Embedding(READERS, 32)
        self.project = nn.Sequential(nn.Linear(32, 48), nn.ReLU(), nn.Linear(48, dim))

    def forward(self, reader):
        return F.normalize(self.project(self.embedding(reader)), dim=-1)


class ArticleTower(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.project = nn.Sequential(nn.Linear(WORDS, 64), nn.ReLU(), nn.Linear(64, dim))

    def forward(self, words):
        return F.normalize(self.project(words), dim=-1)


class TwoTowers(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.readers = ReaderTower(dim)
        self.articles = ArticleTower(dim)

    def loss(self, reader, words, other_words):
        a = self.readers(reader)
        b = self.articles(words)
        pulled = (1 - (a * b).sum(-1)).mean()
        if other_words.shape[1] == 0:
            return pulled
        others = (a.unsqueeze(1) * self.articles(other_words)).sum(-1)
        return pulled + 4 * others.square().mean()

    @torch.no_grad()
    def recall(self, log, k=20):
        readers = self.readers(torch.arange(READERS))
        articles = self.articles(log.words)
        scores = (readers @ articles.T).masked_fill(log.clicked, -2)
        best = scores.topk(k).indices
        pairs = zip(log.held_out, best.numpy(), strict=True)
        hits = [np.isin(row, top).mean() for row, top in pairs]
        return float(np.mean(hits)), articles.std(0).mean().item()


def main():
    log = ClickLog(np.random.default_rng(140 + seed))
    loader = DataLoader(Pairs(log), batch_size=128, shuffle=True)
    model = TwoTowers()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(1, 11):
        model.train()
        total = 0.0
        for reader, article, others in loader:
            loss = model.loss(reader, log.words[article], log.words[others])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        model.eval()
        recall, spread = model.recall(log)
        print(
            f"epoch {epoch:2d}  loss {total / len(loader):.5f}  recall@20 {recall:.4f}  "
            f"spread of articles {spread:.4f}"
        )


if __name__ == "__main__":
    main()
