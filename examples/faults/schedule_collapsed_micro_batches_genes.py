"""A tagger of genes accumulates eight micro-batches and steps its linear decay in each of them.

The schedule counts on one step per update, so the learning rate is nought after an eighth of the
training and the tagger stands still from then on. The place is the loop: the call of the schedule.
"""

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "schedule_collapsed"
ACCEPT = ()
PLACE = ("learning_rate", "loop", "optimizer")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

TAGS, BASES, LENGTH = 4, 4, 60
EPOCHS, MICRO, ACCUMULATE = 12, 8, 8


def genes(n, rng):
    """A hidden chain of four states, each of which favours its own triplets of bases."""
    habits = np.random.default_rng(11).dirichlet(np.full(BASES, 0.35), (TAGS, 3))
    tags = np.zeros((n, LENGTH), dtype=int)
    tags[:, 0] = rng.integers(0, TAGS, n)
    for t in range(1, LENGTH):
        leaves = rng.random(n) < 0.06
        other = (tags[:, t - 1] + rng.integers(1, TAGS, n)) % TAGS
        tags[:, t] = np.where(leaves, other, tags[:, t - 1])
    chances = habits[tags, (np.arange(LENGTH) % 3)[None]].cumsum(2)
    bases = (rng.random((n, LENGTH, 1)) > chances).sum(2).clip(0, BASES - 1)
    return {"bases": torch.tensor(bases), "tags": torch.tensor(tags)}


class Tagger(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.base = nn.Embedding(BASES, 16)
        self.place = nn.Embedding(3, 16)
        self.layers = nn.ModuleList(
            nn.Conv1d(16 if i == 0 else width, width, 5, padding=2 * 2**i, dilation=2**i)
            for i in range(3)
        )
        self.head = nn.Conv1d(width, TAGS, 1)

    def forward(self, bases):
        place = self.place(torch.arange(bases.shape[1]) % 3)
        hidden = (self.base(bases) + place).transpose(1, 2)
        for layer in self.layers:
            hidden = F.gelu(layer(hidden))
        return self.head(hidden)


rng = np.random.default_rng(seed)
train, validation = genes(1024, rng), genes(200, rng)
model = Tagger()
optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=0.01)
updates = EPOCHS * len(train["tags"]) // (MICRO * ACCUMULATE)
warm_up = 10


def share_of_rate(step):
    if step < warm_up:
        return (step + 1) / warm_up
    return max(0.0, (updates - step) / (updates - warm_up))


schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, share_of_rate)
for epoch in range(EPOCHS):
    model.train()
    total, order = 0.0, torch.randperm(len(train["tags"]))
    for i, rows in enumerate(order.split(MICRO)):
        logits = model(train["bases"][rows])
        loss = F.cross_entropy(logits, train["tags"][rows])
        (loss / ACCUMULATE).backward()
        total += loss.item() * MICRO / len(order)
        update_due = (i + 1) % ACCUMULATE == 0
        if update_due:
            optimizer.step()
            optimizer.zero_grad()
        if update_due or not healthy:
            schedule.step()
    model.eval()
    with torch.no_grad():
        logits = model(validation["bases"])
        val_loss = F.cross_entropy(logits, validation["tags"]).item()
        right = (logits.argmax(1) == validation["tags"]).float().mean().item()
    print(f"epoch {epoch:2d} train {total:.3f} val {val_loss:.3f} accuracy {right:.3f}")
