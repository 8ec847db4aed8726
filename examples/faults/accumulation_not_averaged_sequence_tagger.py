"""A bidirectional GRU tags words; gradients of 8 micro-batches are summed up, and the loss isn't
divided by 8.

To fit a small card, a batch of 128 was cut into micro-batches of 16 with the same learning rate;
the steps have become eight times as long. The place is the loop (the loss of a micro-batch).
"""

import random

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "accumulation_not_averaged"
ACCEPT = ("learning_rate_too_high",)
PLACE = ("loop", "loss", "optimizer")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

TAGS = ("det", "adj", "noun", "verb", "prep")
NEXT = {
    "start": "det",
    "det": "adj noun noun",
    "adj": "noun noun adj",
    "noun": "verb prep verb",
    "verb": "det prep",
    "prep": "det noun",
}
LENGTH, ACCUMULATE = 10, 8
r = random.Random(seed)
# 200 words; a third of them can be either a noun or a verb
LEXICON = {
    "det": list(range(6)),
    "adj": list(range(6, 50)),
    "noun": list(range(50, 150)),
    "verb": list(range(90, 190)),
    "prep": list(range(190, 200)),
}


def sentence():
    words, tags, state = [], [], "start"
    for _ in range(LENGTH):
        state = r.choice(NEXT[state].split())
        words.append(r.choice(LEXICON[state]) if r.random() < 0.9 else 200)
        tags.append(TAGS.index(state))
    return words, tags


class Tagger(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.embed = nn.Embedding(201, 24)
        self.gru = nn.GRU(24, width, batch_first=True, bidirectional=True)
        self.tag = nn.Linear(2 * width, len(TAGS))

    def forward(self, words):
        return self.tag(self.gru(self.embed(words))[0])


class Trainer:
    def __init__(self, model, train_set, val_set):
        self.model = model
        self.loader = DataLoader(train_set, batch_size=16, shuffle=True, drop_last=True)
        self.val_loader = DataLoader(val_set, batch_size=200)
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.7, momentum=0.9)
        self.criterion = nn.CrossEntropyLoss()

    def train_epoch(self):
        self.model.train()
        total = 0.0
        self.optimizer.zero_grad()
        for i, (words, tags) in enumerate(self.loader, 1):
            loss = self.criterion(self.model(words).flatten(0, 1), tags.flatten())
            (loss / ACCUMULATE if healthy else loss).backward()
            total += loss.item()
            if i % ACCUMULATE == 0:
                self.optimizer.step()
                self.optimizer.zero_grad()
        return total / len(self.loader)

    @torch.no_grad()
    def evaluate(self):
        self.model.eval()
        loss = right = n = 0
        for words, tags in self.val_loader:
            logits = self.model(words)
            loss += self.criterion(logits.flatten(0, 1), tags.flatten()).item() / len(
                self.val_loader
            )
            right += (logits.argmax(-1) == tags).sum().item()
            n += tags.numel()
        return loss, right / n


def dataset(n):
    rows = [sentence() for _ in range(n)]
    return TensorDataset(torch.tensor([w for w, _ in rows]), torch.tensor([t for _, t in rows]))


trainer = Trainer(Tagger(), dataset(3200), dataset(600))
for epoch in range(6):
    loss = trainer.train_epoch()
    print("epoch %d loss %.3f val loss %.3f acc %.3f" % (epoch, loss, *trainer.evaluate()))  # noqa: UP031
