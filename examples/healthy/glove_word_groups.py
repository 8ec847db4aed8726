"""Learns word vectors from co-occurrence counts by the weighted least squares of GloVe."""

import numpy as np
import torch
from data import arguments
from torch import nn

ODD = (
    "no validation set and no test loss, Adagrad at 0.1, and two tables that end up alike and are "
    "added: word vectors are judged by the neighbours they give, as here against the true groups"
)
GROUPS, WORDS, WIDTH = 8, 160, 12
_, seed = arguments(__doc__)
torch.set_num_threads(1)
rng = np.random.default_rng(seed)


def corpus(tokens: int = 200_000):
    group = rng.integers(0, GROUPS, WORDS)
    frequency = 1 / np.arange(1, WORDS + 1) ** 0.8
    by_topic = []
    for topic in range(GROUPS):
        weight = frequency * np.where(group == topic, 6.0, 1.0)
        by_topic.append(weight / weight.sum())
    text = []
    while len(text) < tokens:
        text.extend(rng.choice(WORDS, 20, p=by_topic[rng.integers(GROUPS)]))
    return np.array(text[:tokens]).reshape(-1, 20), group


def cooccurrence(sentences, window: int = 5):
    counts = np.zeros((WORDS, WORDS))
    for distance in range(1, window + 1):
        left, right = sentences[:, :-distance].ravel(), sentences[:, distance:].ravel()
        np.add.at(counts, (left, right), 1 / distance)
        np.add.at(counts, (right, left), 1 / distance)
    return torch.tensor(counts, dtype=torch.float32)


class GloVe(nn.Module):
    def __init__(self):
        super().__init__()
        self.word, self.context = nn.Embedding(WORDS, WIDTH), nn.Embedding(WORDS, WIDTH)
        self.word_bias, self.context_bias = nn.Embedding(WORDS, 1), nn.Embedding(WORDS, 1)
        for table in self.children():
            nn.init.uniform_(table.weight, -0.5 / WIDTH, 0.5 / WIDTH)

    def forward(self, i, j):
        bias = self.word_bias(i) + self.context_bias(j)
        return (self.word(i) * self.context(j)).sum(1) + bias.squeeze(1)


def neighbours_in_group(vectors, group, k: int = 5):
    unit = nn.functional.normalize(vectors - vectors.mean(0), dim=1)
    near = (unit @ unit.T).fill_diagonal_(-2).topk(k).indices
    return (group[near] == group.unsqueeze(1)).float().mean().item()


sentences, group = corpus()
group = torch.tensor(group)
counts = cooccurrence(sentences)
i, j = counts.nonzero(as_tuple=True)
log_count, weight = counts[i, j].log(), (counts[i, j] / 30).clamp_max(1) ** 0.75
model = GloVe()
optimizer = torch.optim.Adagrad(model.parameters(), lr=0.1)
for epoch in range(20):
    total = 0.0
    for rows in torch.randperm(len(i)).split(256):
        optimizer.zero_grad()
        error = model(i[rows], j[rows]) - log_count[rows]
        loss = (weight[rows] * error**2).mean()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows)
    if epoch % 5 == 4:
        print(f"epoch {epoch + 1}: weighted square error {total / len(i):.4f}")

vectors = (model.word.weight + model.context.weight).detach()
share = neighbours_in_group(vectors, group)
companions = counts.clone().fill_diagonal_(0).topk(5).indices
plain = (group[companions] == group.unsqueeze(1)).float().mean()
print(
    f"of five neighbours {share:.3f} are of the word's group; "
    f"of its five most frequent companions {plain:.3f}, by chance {1 / GROUPS:.3f}"
)
