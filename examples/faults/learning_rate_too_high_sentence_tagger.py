"""Named-entity tagger, a small transformer with Adam at learning rate 0.04 instead of 0.004.

The loss jumps up in the first steps, falls to what the words tell without their neighbours, and
stays there with some bumps; many of the names are told wrongly. The place is the optimizer.
"""

import random
from collections import defaultdict

import torch
from data import arguments
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

KIND = "learning_rate_too_high"
ACCEPT = ("bad_optimizer_settings",)
PLACE = ("optimizer", "learning_rate")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

TAGS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
FIRST = ["anna", "paul", "june", "victor", "rose", "frank", "may", "grace"]
LAST = ["berg", "stone", "rivers", "lake", "miller", "frost", "hill", "banks"]
CITY = ["paris", "lake", "york", "bath", "rose", "stone", "june", "frost"]
FILLER = ["the", "old", "then", "quietly", "green", "again", "small", "often", "late", "near"]


def sentence(rng):
    """Words that are names here and not there: "mr rose berg", "in rose hill", "a rose"."""
    words, tags = [], []

    def say(*pairs):
        for word, tag in pairs:
            words.append(word)
            tags.append(tag)

    for _ in range(rng.randint(2, 4)):
        for _ in range(rng.randint(1, 3)):
            say((rng.choice(FILLER), "O"))
        kind = rng.random()
        if kind < 0.35:
            say((rng.choice(["mr", "mrs", "said"]), "O"), (rng.choice(FIRST), "B-PER"))
            if rng.random() < 0.7:
                say((rng.choice(LAST), "I-PER"))
        elif kind < 0.7:
            say((rng.choice(["in", "to", "from"]), "O"), (rng.choice(CITY), "B-LOC"))
            if rng.random() < 0.4:
                say((rng.choice(LAST), "I-LOC"))
        else:
            say((rng.choice(["a", "this"]), "O"), (rng.choice(FIRST + LAST), "O"))
    return words, tags


class Tagger(nn.Module):
    def __init__(self, n_words, n_tags, dim=32, longest=40):
        super().__init__()
        self.embedding = nn.Embedding(n_words, dim, padding_idx=0)
        self.position = nn.Parameter(0.5 * torch.randn(longest, dim))
        layer = nn.TransformerEncoderLayer(dim, 4, 64, dropout=0.05, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.fc = nn.Linear(dim, n_tags)

    def forward(self, words):
        embedded = self.embedding(words) + self.position[: words.shape[1]]
        return self.fc(self.encoder(embedded, src_key_padding_mask=words == 0))


def spans(tags):
    found, start = set(), None
    for i, tag in enumerate([*tags, 0]):
        inside = tag in (2, 4) and start is not None
        if start is not None and not inside:
            found.add((start, i))
            start = None
        if tag in (1, 3):
            start = i
    return {(a, b, tags[a]) for a, b in found}


def f_score(model, loader):
    model.eval()
    counts = defaultdict(int)
    with torch.no_grad():
        for words, tags in loader:
            guess = model(words).argmax(2)
            for row, (g, t) in enumerate(zip(guess, tags, strict=True)):
                length = int((words[row] != 0).sum())
                told, true = spans(g[:length].tolist()), spans(t[:length].tolist())
                counts["told"] += len(told)
                counts["true"] += len(true)
                counts["both"] += len(told & true)
    return 2 * counts["both"] / max(counts["told"] + counts["true"], 1)


def collate(batch):
    words, tags = zip(*batch, strict=True)
    return (
        pad_sequence(words, batch_first=True),
        pad_sequence(tags, batch_first=True, padding_value=-1),
    )


def main():
    rng = random.Random(80 + seed)
    corpus = [sentence(rng) for _ in range(1500)]
    vocabulary = {w: i + 1 for i, w in enumerate(sorted({w for s, _ in corpus for w in s}))}
    encoded = [
        (torch.tensor([vocabulary[w] for w in s]), torch.tensor([TAGS.index(t) for t in tags]))
        for s, tags in corpus
    ]
    train = DataLoader(encoded[:1200], batch_size=32, shuffle=True, collate_fn=collate)
    dev = DataLoader(encoded[1200:], batch_size=100, collate_fn=collate)
    model = Tagger(len(vocabulary) + 1, len(TAGS))
    criterion = nn.CrossEntropyLoss(ignore_index=-1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.004 if healthy else 0.04)
    for epoch in range(1, 15):
        model.train()
        losses = []
        for words, tags in train:
            model.zero_grad()
            loss = criterion(model(words).transpose(1, 2), tags)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        print(
            f"epoch {epoch}: train loss {sum(losses) / len(losses):.5f} (worst batch "
            f"{max(losses):.3f}) - f1 {100 * f_score(model, dev):.2f}"
        )


if __name__ == "__main__":
    main()
