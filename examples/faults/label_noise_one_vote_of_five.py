"""Intents of support tickets with labels from a crowd; one worker's vote is taken for the truth.

Each ticket was labelled by five workers. Exporting the table, someone kept `votes[:, 0]` as "the
label". Worker 0 was paid by the piece and is wrong in half of the tickets. The network first
learns the intents, then that worker's errors by heart. The place is the labels. The twin takes the
vote of the majority; the validation part was labelled by experts.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader

KIND = "label_noise"
ACCEPT = ("overfit",)
PLACE = ("label*", "loss*", "input*", "loader")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
INTENTS, VOCABULARY = 5, 400


def tickets(n, r):
    """Bags of words: each intent has its favourite 25 words among words that all use."""
    intent = r.integers(0, INTENTS, n)
    texts = []
    for i in intent:
        own = r.integers(0, 25, r.integers(3, 8)) + 25 * i
        other = r.integers(0, 25 * INTENTS, 3)
        common = r.integers(25 * INTENTS, VOCABULARY, r.integers(5, 14))
        texts.append(r.permutation(np.concatenate([own, other, common])))
    return texts, intent


def crowd(intent, r):
    """Votes of five workers, who are wrong in 50, 12, 15, 10 and 18 of a hundred tickets."""
    votes = np.repeat(intent[:, None], 5, axis=1)
    for worker, rate in enumerate((0.5, 0.12, 0.15, 0.10, 0.18)):
        wrong = r.random(len(intent)) < rate
        votes[wrong, worker] = (intent[wrong] + r.integers(1, INTENTS, wrong.sum())) % INTENTS
    return votes


def majority(votes):
    return np.array([np.bincount(row, minlength=INTENTS).argmax() for row in votes])


def collate(rows):
    words = torch.tensor(np.concatenate([text for text, _ in rows]))
    offsets = torch.tensor([0] + [len(text) for text, _ in rows[:-1]]).cumsum(0)
    return words, offsets, torch.tensor([int(label) for _, label in rows])


class IntentNet(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.bag = nn.EmbeddingBag(VOCABULARY, dim, mode="mean")
        self.mlp = nn.Sequential(nn.Linear(dim, 64), nn.ReLU(), nn.Linear(64, INTENTS))

    def forward(self, words, offsets):
        return self.mlp(self.bag(words, offsets))


r = np.random.default_rng(seed)
texts, intent = tickets(1500, r)
votes = crowd(intent, r)
labels = majority(votes) if healthy else votes[:, 0]
train = DataLoader(
    list(zip(texts, labels, strict=False)), batch_size=32, shuffle=True, collate_fn=collate
)
val = DataLoader(list(zip(*tickets(600, r), strict=False)), batch_size=200, collate_fn=collate)
model = IntentNet()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
criterion = nn.CrossEntropyLoss()

for epoch in range(1, 15 + 1):
    model.train()
    total, right = 0.0, 0
    for words, offsets, y in train:
        logits = model(words, offsets)
        loss = criterion(logits, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(y)
        right += (logits.argmax(1) == y).sum().item()
    model.eval()
    val_loss, val_right = 0.0, 0
    with torch.no_grad():
        for words, offsets, y in val:
            logits = model(words, offsets)
            val_loss += criterion(logits, y).item() * len(y)
            val_right += (logits.argmax(1) == y).sum().item()
    print(
        f"{epoch:2d}: train loss {total / 1500:.3f} accuracy {right / 1500:.3f}, "
        f"val loss {val_loss / 600:.3f} accuracy {val_right / 600:.3f}"
    )
