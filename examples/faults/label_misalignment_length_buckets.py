"""An LSTM tells the sentiment of film notes; the notes are sorted by length into buckets and the
labels stay in the old order.

To save padding the token lists are sorted by length before batching; `labels` is not reordered
with them. The place is the loader (input and labels).
"""

import random

import torch
from data import arguments
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence

KIND = "label_misalignment"
ACCEPT = ("label_noise",)
PLACE = ("loader", "input*", "loop")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

rnd = random.Random(seed)
POS = [
    "superb",
    "tender",
    "witty",
    "gripping",
    "fresh",
    "honest",
    "radiant",
    "clever",
    "warm",
    "bold",
]
NEG = [
    "stale",
    "clumsy",
    "hollow",
    "noisy",
    "bland",
    "sloppy",
    "dreary",
    "shallow",
    "forced",
    "limp",
]
FILL = [f"word{i}" for i in range(400)]
PAD, UNK = 0, 1


def note():
    good = rnd.random() < 0.5
    tokens = [rnd.choice(FILL) for _ in range(rnd.randint(4, 22))]
    for _ in range(rnd.randint(1, 3)):
        tokens.insert(rnd.randrange(len(tokens) + 1), rnd.choice(POS if good else NEG))
    if rnd.random() < 0.4:
        at = rnd.randrange(len(tokens))
        tokens[at:at] = ["not", rnd.choice(NEG if good else POS)]
    return tokens, int(good)


class BucketLoader:
    """Batches of notes of like length, in random order of batches."""

    def __init__(self, notes, labels, vocab, batch_size):
        order = sorted(range(len(notes)), key=lambda i: len(notes[i]))
        self.ids = [torch.tensor([vocab.get(w, UNK) for w in notes[i]]) for i in order]
        self.labels = torch.tensor([labels[i] for i in order] if healthy else labels)
        self.batch_size = batch_size

    def __iter__(self):
        starts = list(range(0, len(self.ids), self.batch_size))
        rnd.shuffle(starts)
        for s in starts:
            part = self.ids[s : s + self.batch_size]
            yield (
                pad_sequence(part, batch_first=True, padding_value=PAD),
                torch.tensor([len(p) for p in part]),
                self.labels[s : s + self.batch_size],
            )


class SentimentLSTM(nn.Module):
    def __init__(self, vocab_size, dim=40, hidden=48):
        super().__init__()
        self.emb = nn.Embedding(vocab_size, dim, padding_idx=PAD)
        self.lstm = nn.LSTM(dim, hidden, batch_first=True, bidirectional=True)
        self.drop = nn.Dropout(0.3)
        self.fc = nn.Linear(2 * hidden, 2)

    def forward(self, ids, lengths):
        packed = pack_padded_sequence(
            self.drop(self.emb(ids)), lengths, batch_first=True, enforce_sorted=False
        )
        _, (h, _) = self.lstm(packed)
        return self.fc(self.drop(torch.cat([h[0], h[1]], 1)))


train = [note() for _ in range(4000)]
val = [note() for _ in range(800)]
vocab = {w: i + 2 for i, w in enumerate(sorted({w for t, _ in train for w in t}))}
train_loader = BucketLoader([t for t, _ in train], [y for _, y in train], vocab, 64)
model = SentimentLSTM(len(vocab) + 2)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
criterion = nn.CrossEntropyLoss()


def accuracy():
    model.eval()
    ids = pad_sequence(
        [torch.tensor([vocab.get(w, UNK) for w in t]) for t, _ in val], batch_first=True
    )
    lengths = torch.tensor([len(t) for t, _ in val])
    with torch.no_grad():
        out = model(ids, lengths).argmax(1)
    return (out == torch.tensor([y for _, y in val])).float().mean().item()


for epoch in range(6):
    model.train()
    total, count, hits = 0.0, 0, 0
    for ids, lengths, y in train_loader:
        logits = model(ids, lengths)
        loss = criterion(logits, y)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total, count, hits = (
            total + loss.item() * len(y),
            count + len(y),
            hits + (logits.argmax(1) == y).sum().item(),
        )
    print(
        f"epoch {epoch + 1}: loss {total / count:.3f} train acc {hits / count:.3f} val acc {accuracy():.3f}"  # noqa: E501
    )
