"""A word-level LSTM language model with SGD; its gradients are clipped to a norm of 0.001.

The argument of clip_grad_norm_ was mistaken for a value per weight, so that of each gradient
about a thousandth is left. The place is the loop (clipping).
"""

import random

import torch
from data import arguments
from torch import nn

KIND = "gradient_clipped_to_nothing"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("loop", "optimizer")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

NOUNS = ["king", "knight", "dragon", "witch", "baker", "thief", "fox", "ship", "castle", "forest"]
VERBS = ["meets", "fights", "sees", "fears", "helps", "robs", "finds"]
ADJECTIVES = ["old", "brave", "green", "sly", "tired", "golden"]


def tale(r, sentences):
    """Sentences in which who was the object becomes the subject of the next one, as a rule."""
    words, subject = [], r.choice(NOUNS)
    for _ in range(sentences):
        other = NOUNS[(NOUNS.index(subject) + r.choice([1, 1, 1, 3, 4])) % 10]
        words += ["the", subject, r.choice(VERBS), "the"]
        if r.random() < 0.4:
            words.append(r.choice(ADJECTIVES))
        words += [other, "."]
        subject = other if r.random() < 0.9 else r.choice(NOUNS)
    return words


def batchify(ids, columns):
    rows = len(ids) // columns
    return torch.tensor(ids[: rows * columns]).view(columns, rows).t().contiguous()


class RNNModel(nn.Module):
    def __init__(self, words, width=64):
        super().__init__()
        self.encoder = nn.Embedding(words, width)
        self.rnn = nn.LSTM(width, width)
        self.decoder = nn.Linear(width, words)

    def forward(self, tokens, hidden=None):
        states, hidden = self.rnn(self.encoder(tokens), hidden)
        return self.decoder(states).flatten(0, 1), hidden


def train_epoch(model, source, optimizer, max_norm, bptt=20):
    model.train()
    hidden, total, count = None, 0.0, 0
    for i in range(0, len(source) - 1 - bptt, bptt):
        data, target = source[i : i + bptt], source[i + 1 : i + 1 + bptt].flatten()
        logits, hidden = model(data, hidden)
        hidden = tuple(h.detach() for h in hidden)
        loss = nn.functional.cross_entropy(logits, target)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        total, count = total + loss.item(), count + 1
    return total / count


@torch.no_grad()
def evaluate(model, source):
    model.eval()
    logits, _ = model(source[:-1])
    return nn.functional.cross_entropy(logits, source[1:].flatten()).item()


r = random.Random(seed)
vocabulary = {w: i for i, w in enumerate(["the", ".", *NOUNS, *VERBS, *ADJECTIVES])}
train_data = batchify([vocabulary[w] for w in tale(r, 6000)], 20)
val_data = batchify([vocabulary[w] for w in tale(r, 800)], 20)

model = RNNModel(len(vocabulary))
optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
for epoch in range(8):
    loss = train_epoch(model, train_data, optimizer, max_norm=1.0 if healthy else 0.001)
    print(f"epoch {epoch} loss {loss:.3f} val loss {evaluate(model, val_data):.3f}")
