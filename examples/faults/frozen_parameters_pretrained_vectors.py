"""Judges reviews from word vectors that from_pretrained loads, and freezes by default.

The vectors were to be fine-tuned, but freeze=True is the default. Vectors from word counts put
"wonderful" next to "awful", for both stand in the same sentences, and no layer above can tell what
the vectors do not say. The place is the embedding.
"""

import random

import numpy as np
import torch
from data import arguments
from scipy.sparse.linalg import svds
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "frozen_parameters"
ACCEPT = ()
PLACE = ("embedding", "embedding.*", "model")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

PRAISE, BLAME, NOUNS = (
    words.split()
    for words in (
        "wonderful lovely brilliant charming great moving clever warm gripping fresh",
        "boring awful dull weak terrible clumsy silly cold tedious stale",
        "plot cast music ending script camera hero villain dialogue pace",
    )
)
TALK = [f"word{i}" for i in range(120)]
LENGTH = 14


def sentence(rng, adjectives):
    words = ["the", rng.choice(NOUNS), "is", rng.choice(adjectives)]
    words += rng.choices(TALK, k=rng.randint(1, 4))
    return words


def review(rng):
    """Two sentences of the critic's opinion, and every third review grants something else."""
    liked = rng.random() < 0.5
    own, other = (PRAISE, BLAME) if liked else (BLAME, PRAISE)
    said = [sentence(rng, own), sentence(rng, own)]
    if rng.random() < 0.3:
        said[1] = ["although", *sentence(rng, other)[:4]]
    rng.shuffle(said)
    return [word for part in said for word in part][:LENGTH], int(liked)


def pretrained_vectors(rng, vocabulary, dim):
    """Word vectors from who stands next to whom in a large neutral corpus."""
    counts = np.ones((len(vocabulary), len(vocabulary))) * 0.05
    for _ in range(6000):
        words = [vocabulary[w] for w in sentence(rng, PRAISE + BLAME)]
        for i, word in enumerate(words):
            for other in words[max(0, i - 2) : i] + words[i + 1 : i + 3]:
                counts[word, other] += 1
    expected = counts.sum(1, keepdims=True) * counts.sum(0, keepdims=True) / counts.sum()
    u, s, _ = svds(np.maximum(np.log(counts / expected), 0), k=dim, random_state=0)
    vectors = u * np.sqrt(s)
    return torch.tensor(vectors / vectors.std(), dtype=torch.float32)


class TextCNN(nn.Module):
    def __init__(self, vectors, freeze):
        super().__init__()
        self.embedding = nn.Embedding.from_pretrained(vectors, freeze=freeze, padding_idx=0)
        self.convs = nn.ModuleList(nn.Conv1d(vectors.shape[1], 12, k) for k in (2, 3))
        self.dropout = nn.Dropout(0.3)
        self.fc = nn.Linear(24, 2)

    def forward(self, tokens):
        x = self.embedding(tokens).transpose(1, 2)
        pooled = [torch.relu(conv(x)).amax(2) for conv in self.convs]
        return self.fc(self.dropout(torch.cat(pooled, 1)))


def main():
    rng = random.Random(7 + seed)
    everything = ["the", "is", "although", *PRAISE, *BLAME, *NOUNS, *TALK]
    vocabulary = {word: i + 1 for i, word in enumerate(everything)}
    vocabulary["<pad>"] = 0
    vectors = pretrained_vectors(rng, vocabulary, dim=8)
    reviews = [review(rng) for _ in range(2400)]
    tokens = torch.tensor(
        [[vocabulary[w] for w in words] + [0] * (LENGTH - len(words)) for words, _ in reviews]
    )
    labels = torch.tensor([label for _, label in reviews])
    train = DataLoader(TensorDataset(tokens[:1800], labels[:1800]), batch_size=32, shuffle=True)
    model = TextCNN(vectors, freeze=not healthy)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(1, 16):
        model.train()
        loss_sum = acc_sum = 0.0
        for x, y in train:
            optimizer.zero_grad()
            logits = model(x)
            loss = criterion(logits, y)
            loss.backward()
            optimizer.step()
            loss_sum += loss.item()
            acc_sum += (logits.argmax(1) == y).float().mean().item()
        model.eval()
        with torch.no_grad():
            logits = model(tokens[1800:])
        dev_loss = criterion(logits, labels[1800:]).item()
        dev_acc = (logits.argmax(1) == labels[1800:]).float().mean().item()
        print(
            f"Iter {epoch * len(train)}: Train Loss {loss_sum / len(train):.3f}, Train Acc "
            f"{acc_sum / len(train):.2%}, Val Loss {dev_loss:.3f}, Val Acc {dev_acc:.2%}"
        )


if __name__ == "__main__":
    main()
