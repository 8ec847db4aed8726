"""Sentences in six languages are told apart by a net that reads one corpus after the other.

The loop takes its slices in the order in which the corpora were joined, so that for a sixth of
each epoch the net sees one language only and forgets the others. The place is the loop: the order
of the batches.
"""

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "unshuffled_data"
ACCEPT = ()
PLACE = ("loop", "loader", "input", "labels*")
SILENT = False
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

LANGUAGES, LETTERS, LENGTH, PER_CORPUS, BATCH, EPOCHS = 6, 22, 32, 480, 24, 6


def write(n, language, rng):
    """n sentences by the letter chain of a language; related languages share much of it."""
    habits = np.random.default_rng(40)
    family = habits.dirichlet(np.full(LETTERS, 0.6), LETTERS)
    own = np.random.default_rng(50 + language).dirichlet(np.full(LETTERS, 0.6), LETTERS)
    chain = (0.2 * family + 0.8 * own).cumsum(1)
    letters = np.zeros((n, LENGTH), dtype=int)
    letters[:, 0] = rng.integers(0, LETTERS, n)
    for t in range(1, LENGTH):
        drawn = rng.random((n, 1)) > chain[letters[:, t - 1]]
        letters[:, t] = drawn.sum(1).clip(0, LETTERS - 1)
    return letters


def corpora(per_language, rng):
    texts = np.concatenate([write(per_language, k, rng) for k in range(LANGUAGES)])
    language = np.arange(LANGUAGES).repeat(per_language)
    return {"letters": torch.tensor(texts), "language": torch.tensor(language)}


class LanguageNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.letter = nn.Embedding(LETTERS, 24)
        self.pairs = nn.Conv1d(24, 64, 2)
        self.head = nn.Sequential(nn.Dropout(0.2), nn.Linear(64, LANGUAGES))

    def forward(self, letters):
        hidden = F.relu(self.pairs(self.letter(letters).transpose(1, 2)))
        return self.head(hidden.mean(2))


rng = np.random.default_rng(seed)
train, validation = corpora(PER_CORPUS, rng), corpora(60, rng)
model = LanguageNet()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
size = len(train["language"])
for epoch in range(1, EPOCHS + 1):
    model.train()
    order = torch.randperm(size) if healthy else torch.arange(size)
    total = 0.0
    for start in range(0, size, BATCH):
        batch = {name: part[order[start : start + BATCH]] for name, part in train.items()}
        loss = F.cross_entropy(model(batch["letters"]), batch["language"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * BATCH / size
    model.eval()
    with torch.no_grad():
        logits = model(validation["letters"])
        val_loss = F.cross_entropy(logits, validation["language"]).item()
        accuracy = (logits.argmax(1) == validation["language"]).float().mean().item()
    print(f"epoch {epoch} train {total:.3f} val {val_loss:.3f} accuracy {accuracy:.3f}")
