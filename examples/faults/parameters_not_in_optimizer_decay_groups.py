"""Tagging words with an embedding and a GRU; the groups with and without weight decay know only
Linear and LayerNorm.

The loop that sorts parameters into the two groups goes by module type, and neither Embedding nor
GRU is in its lists. Only norm and head are trained, on random features; the loss falls all the
same, and stays high. The place is the optimizer (what it lacks: `words`, `rnn`). Exact.
"""

import random

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "parameters_not_in_optimizer"
ACCEPT = ()
PLACE = ("words*", "rnn*", "optimizer")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)

TAGS = {"O": 0, "PER": 1, "LOC": 2, "VERB": 3}
FIRST = [f"first{i}" for i in range(25)]
BOTH = [f"name{i}" for i in range(30)]  # a person after a title, a town after "in"
VERBS = [f"verb{i}" for i in range(25)]
REST = [f"word{i}" for i in range(60)]
VOCABULARY = {w: i for i, w in enumerate(["<pad>", "mr", "in", *FIRST, *BOTH, *VERBS, *REST])}


def sentence(r):
    out = []
    while len(out) < 12:
        kind = r.random()
        if kind < 0.25:
            out += [("mr", "O"), (r.choice(BOTH), "PER")]
        elif kind < 0.5:
            out += [("in", "O"), (r.choice(BOTH), "LOC")]
        elif kind < 0.6:
            out += [(r.choice(FIRST), "PER")]
        elif kind < 0.75:
            out += [(r.choice(VERBS), "VERB")]
        else:
            out += [(r.choice(REST), "O")]
    out = out[:12]
    return [VOCABULARY[w] for w, _ in out], [TAGS[t] for _, t in out]


def corpus(n, r):
    pairs = [sentence(r) for _ in range(n)]
    return torch.tensor([p[0] for p in pairs]), torch.tensor([p[1] for p in pairs])


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(len(VOCABULARY), 16, padding_idx=0)
        self.rnn = nn.GRU(16, 24, batch_first=True, bidirectional=True)
        self.norm = nn.LayerNorm(48)
        self.head = nn.Linear(48, len(TAGS))

    def forward(self, tokens):
        return self.head(self.norm(self.rnn(self.words(tokens))[0]))


def configure_optimizer(model, lr, weight_decay):
    decay_types = (nn.Linear, nn.GRU) if healthy else (nn.Linear,)
    no_decay_types = (nn.LayerNorm, nn.Embedding) if healthy else (nn.LayerNorm,)
    decay, no_decay = [], []
    for module in model.modules():
        for name, p in module.named_parameters(recurse=False):
            if isinstance(module, decay_types) and "weight" in name:
                decay.append(p)
            elif isinstance(module, decay_types + no_decay_types):
                no_decay.append(p)
    groups = [
        {"params": decay, "weight_decay": weight_decay},
        {"params": no_decay, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=lr)


r = random.Random(seed)
x, y = corpus(700, r)
x_val, y_val = corpus(200, r)
model = Tagger()
optimizer = configure_optimizer(model, lr=3e-3, weight_decay=0.01)
for epoch in range(6):
    model.train()
    for rows in torch.randperm(len(x)).split(20):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x[rows]).flatten(0, 1), y[rows].flatten())
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        guess = model(x_val).argmax(-1)
    entity = y_val > 0
    print(
        f"epoch {epoch}  loss {loss.item():.3f}  tags {(guess == y_val).float().mean():.3f}"
        f"  entities {(guess == y_val)[entity].float().mean():.3f}"
    )
