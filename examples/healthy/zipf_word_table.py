"""Mood of short texts with a large table of words, of which most occur hardly ever."""

import torch
from data import arguments
from torch import nn

ODD = "Most rows of the embedding get no gradient in a step: words are rare, gradients sparse."

_, seed = arguments(__doc__)
g = torch.Generator().manual_seed(seed)
WORDS = 5000
frequency = 1 / torch.arange(1, WORDS + 1).float()
mood_of_word = torch.randn(WORDS, generator=g) * (torch.rand(WORDS, generator=g) < 0.5)


def texts(n, length=25):
    words = torch.multinomial(frequency, n * length, replacement=True, generator=g)
    words = words.view(n, length)
    return words, (mood_of_word[words].sum(1) > mood_of_word[:20].mean() * 5).long()


x, y = texts(6000)
x_val, y_val = texts(1000)
table = nn.EmbeddingBag(WORDS, 16, mode="mean", sparse=True)
head = nn.Linear(16, 2)
sparse = torch.optim.SparseAdam(table.parameters(), lr=5e-3)
dense = torch.optim.Adam(head.parameters(), lr=5e-3)
for epoch in range(4):
    for rows in torch.randperm(len(x)).split(64):
        loss = nn.functional.cross_entropy(head(table(x[rows])), y[rows])
        sparse.zero_grad()
        dense.zero_grad()
        loss.backward()
        sparse.step()
        dense.step()
    with torch.no_grad():
        out = head(table(x_val))
    val = nn.functional.cross_entropy(out, y_val).item()
    acc = (out.argmax(1) == y_val).float().mean().item()
    print(f"epoch {epoch}: train {loss.item():.3f} val {val:.3f} acc {acc:.3f}")
