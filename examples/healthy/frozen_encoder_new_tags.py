"""Word tags by a bidirectional encoder that was pre-trained in the same script and is frozen; only
a small head learns, and most of the weights never change.

The frozen share is above 90 %, the encoder is left in eval mode on purpose, and its gradients are
off. The encoder has learnt to fill in missing words, and the head needs little more. In the
second phase the optimizer holds the head alone.
"""

import random

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

ODD = (
    "Word tags by a bidirectional encoder that was pre-trained in the same script and is "
    "frozen; only a small head learns, and most of the weights never change"
)

_, seed = arguments(__doc__)

LEXICON = {
    "noun": [f"noun{i}" for i in range(60)],
    "verb": [f"verb{i}" for i in range(40)],
    "adj": [f"adj{i}" for i in range(30)],
    "det": ["the", "a", "this", "every"],
    "prep": ["in", "on", "with", "under"],
    "adv": [f"adv{i}" for i in range(15)],
}
for i in range(25):  # ambiguous words: their tag depends on the neighbours
    LEXICON["noun"].append(f"both{i}")
    LEXICON["verb"].append(f"both{i}")
TAGS = list(LEXICON)
WORDS = ["[MASK]"] + sorted({w for ws in LEXICON.values() for w in ws})  # noqa: RUF005
W2I = {w: i for i, w in enumerate(WORDS)}


def phrase(rnd):
    out = ["det"] + ["adj"] * rnd.choice([0, 0, 1, 2]) + ["noun"]
    return out + (["prep"] + phrase(rnd) if rnd.random() < 0.2 else [])  # noqa: RUF005


def sentences(n, rnd, length=12):
    xs, ts = [], []
    for _ in range(n):
        tags = []
        while len(tags) < length:
            tags += (
                phrase(rnd)
                + ["adv"] * rnd.choice([0, 0, 1])
                + ["verb"]
                + (phrase(rnd) if rnd.random() < 0.6 else [])
            )
        tags = tags[:length]
        xs.append([W2I[rnd.choice(LEXICON[t])] for t in tags])
        ts.append([TAGS.index(t) for t in tags])
    return torch.tensor(xs), torch.tensor(ts)


class Encoder(nn.Module):
    def __init__(self, dim=32, hidden=48):
        super().__init__()
        self.emb = nn.Embedding(len(WORDS), dim)
        self.drop = nn.Dropout(0.1)
        self.rnn = nn.GRU(dim, hidden, batch_first=True, bidirectional=True)

    def forward(self, ids):
        return self.rnn(self.drop(self.emb(ids)))[0]


rnd = random.Random(seed)
text, _ = sentences(4000, rnd)
encoder, cloze = Encoder(), nn.Linear(96, len(WORDS))
opt = torch.optim.Adam([*encoder.parameters(), *cloze.parameters()], lr=3e-3)
for step in range(1, 401):
    ids = text[torch.randint(0, len(text), (48,))]
    masked = torch.rand(ids.shape) < 0.15
    logits = cloze(encoder(ids.masked_fill(masked, 0))[masked])
    loss = F.cross_entropy(logits, ids[masked])
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_([*encoder.parameters(), *cloze.parameters()], 1.0)
    opt.step()
    if step % 100 == 0:
        print(f"pre-training {step} loss {loss.item():.3f}")

encoder.requires_grad_(False).eval()
x, t = sentences(400, rnd)
xv, tv = sentences(300, rnd)
head = nn.Sequential(nn.Linear(96, 16), nn.ReLU(), nn.Linear(16, len(TAGS)))
opt = torch.optim.AdamW(head.parameters(), lr=5e-3, weight_decay=1e-2)
epochs = 15
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, epochs)
for epoch in range(1, epochs + 1):
    head.train()
    total = 0.0
    for rows in torch.randperm(len(x)).split(25):
        loss = F.cross_entropy(head(encoder(x[rows])).transpose(1, 2), t[rows])
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()
    sched.step()
    head.eval()
    if epoch % 3 == 0:
        with torch.no_grad():
            logits = head(encoder(xv))
            ambiguous = torch.tensor([[WORDS[i].startswith("both") for i in row] for row in xv])
            right = (logits.argmax(-1) == tv).float()
        print(
            f"epoch {epoch} loss {total / 16:.3f} val {F.cross_entropy(logits.transpose(1, 2), tv).item():.3f} acc {right.mean():.3f} on ambiguous words {right[ambiguous].mean():.3f}"  # noqa: E501
        )
