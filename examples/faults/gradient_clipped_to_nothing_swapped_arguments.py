"""Finding places and persons in sentences by a bidirectional LSTM tagger; two arguments are
swapped.

`train_epoch(model, loader, optimizer, label_smoothing, clip)` is called with 5.0, 0.002, by
position and the wrong way round. The smoothing is capped and does not complain; every gradient is
cut to a norm of 0.002, and SGD hardly moves. The place is the loop. The twin passes both by name.
"""

import random

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader

KIND = "gradient_clipped_to_nothing"
ACCEPT = ()
PLACE = ("loop", "optimizer")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)

VOCABULARY, TAGS = 220, ("O", "PER", "LOC")
NAMES = range(1, 60)  # a name may be a person or a place: its neighbours tell


def sentence(r):
    words, tags = [], []
    for _ in range(r.randint(2, 4)):
        for _ in range(r.randint(0, 3)):
            words.append(r.randrange(80, VOCABULARY)), tags.append(0)
        if r.random() < 0.5:
            words += [r.randrange(60, 66), r.choice(NAMES)]  # "in", "near", ...
            tags += [0, 2]
        else:
            words += [r.choice(NAMES), r.randrange(66, 72)]  # ... "says", "laughs"
            tags += [1, 0]
    return torch.tensor(words), torch.tensor(tags)


def collate(items):
    words, tags = zip(*items, strict=True)
    pad = nn.utils.rnn.pad_sequence
    return pad(words, batch_first=True), pad(tags, batch_first=True, padding_value=-100)


class Tagger(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, 32, padding_idx=0)
        self.lstm = nn.LSTM(32, width, batch_first=True, bidirectional=True)
        self.emit = nn.Linear(2 * width, len(TAGS))

    def forward(self, words):
        return self.emit(self.lstm(self.embed(words))[0])


def train_epoch(model, loader, optimizer, label_smoothing, clip):
    model.train()
    total = 0.0
    for words, tags in loader:
        logits = model(words)
        loss = nn.functional.cross_entropy(
            logits.flatten(0, 1), tags.flatten(), label_smoothing=min(label_smoothing, 0.02)
        )
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        total += loss.item() / len(loader)
    return total


r = random.Random(seed)
train = DataLoader([sentence(r) for _ in range(1200)], 24, shuffle=True, collate_fn=collate)
words_val, tags_val = collate([sentence(r) for _ in range(300)])
model = Tagger()
optimizer = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9)
for epoch in range(10):
    if healthy:
        loss = train_epoch(model, train, optimizer, label_smoothing=0.002, clip=5.0)
    else:
        loss = train_epoch(model, train, optimizer, 5.0, 0.002)
    model.eval()
    with torch.no_grad():
        guess = model(words_val).argmax(-1)
    real = (tags_val > 0) & (tags_val != -100)
    found = (guess > 0) & (tags_val != -100)
    f1 = 2 * ((guess == tags_val) & real).sum() / (real.sum() + found.sum())
    print(f"epoch {epoch} loss {loss:.4f} val entity F1 {f1:.3f}")
