"""News headlines are sorted into topics by averaged word vectors; the word table alone is kept in
bfloat16 and trained at a small rate.

To halve the memory of the table it was cast to bfloat16 before the optimizer was made; Adam's
steps of 5e-4 are under half the spacing of bfloat16 numbers for most of its entries and vanish.
The linear layers in float32 still learn. The place is the table (words.weight).
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "low_precision_updates_lost"
ACCEPT = ()
PLACE = ("words*", "optimizer")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

VOCAB, TOPICS, DIM, LEN = 3000, 12, 24, 20


def headlines(n, gen, topic_words):
    y = torch.randint(0, TOPICS, (n,), generator=gen)
    ids = torch.empty(n, LEN, dtype=torch.long)
    ranks = 1.0 / torch.arange(1, VOCAB + 1)
    common = torch.multinomial(ranks, n * LEN, replacement=True, generator=gen).view(n, LEN)
    pick = torch.randint(0, topic_words.shape[1], (n, LEN), generator=gen)
    special = topic_words[y.unsqueeze(1), pick]
    ids = torch.where(torch.rand(n, LEN, generator=gen) < 0.3, special, common)
    return ids, y


class HeadlineNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(VOCAB, DIM)
        self.hidden = nn.Linear(DIM, 64)
        self.topics = nn.Linear(64, TOPICS)

    def forward(self, ids):
        mean = self.words(ids).float().mean(1)
        return self.topics(F.relu(self.hidden(mean)))


def main(steps=2000, batch=128, lr=5e-4):
    gen = torch.Generator().manual_seed(seed)
    topic_words = torch.stack([torch.randperm(VOCAB, generator=gen)[:120] for _ in range(TOPICS)])
    x, y = headlines(40000, gen, topic_words)
    xv, yv = headlines(2000, gen, topic_words)
    net = HeadlineNet()
    net.words.to(torch.float32 if healthy else torch.bfloat16)
    optim = torch.optim.Adam(net.parameters(), lr=lr)
    for step in range(1, steps + 1):
        for group in optim.param_groups:
            group["lr"] = lr * min(1.0, 3 * (1 - step / (steps + 1)))
        rows = torch.randint(0, len(x), (batch,), generator=gen)
        loss = F.cross_entropy(net(x[rows]), y[rows])
        optim.zero_grad()
        loss.backward()
        optim.step()
        if step % 250 == 0:
            with torch.no_grad():
                logits = net(xv)
            print(
                f"{step:5d} train {loss.item():.3f} val {F.cross_entropy(logits, yv).item():.3f} acc {(logits.argmax(1) == yv).float().mean().item():.3f}"  # noqa: E501
            )


main()
