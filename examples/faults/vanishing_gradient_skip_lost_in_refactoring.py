"""Keyword or not from stacked speech frames through sixteen gated layers; the skips went away in a
refactoring.

The blocks returned `x + update`; since they are built by a helper and called in a Sequential, each
returns only its update. Sixteen sigmoids in a row shrink the gradient by a factor of ten or so
each: the first layers get none, the last sees the same activations for every input. The place is
the stack `layers`, its first modules. The twin adds the skip.
"""

from functools import partial

import torch
from data import arguments
from torch import nn

KIND = "vanishing_gradient"
ACCEPT = ()
PLACE = (
    "layers",
    "layers.0",
    "layers.0.inner",
    "layers.0.inner.weight",
    "layers.1",
    "stem",
    "stem.weight",
)
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
DEPTH, FEATURES, STACKED = 16, 10, 5


class Gated(nn.Module):
    def __init__(self, width, skip=False):
        super().__init__()
        self.inner, self.skip = nn.Linear(width, width), skip

    def forward(self, x):
        update = torch.sigmoid(self.inner(x))
        return x + update - 0.5 if self.skip else update


class Spotter(nn.Module):
    def __init__(self, block, width=40):
        super().__init__()
        self.stem = nn.Linear(FEATURES * STACKED, width)
        self.layers = nn.Sequential(*(block(width) for _ in range(DEPTH)))
        self.head = nn.Linear(width, 3)

    def forward(self, x):
        return self.head(self.layers(self.stem(x)))


def frames(count, directions):
    """Stacks of frames; the class depends on how the energy moves from the first to the last."""
    x = torch.randn(count, STACKED, FEATURES)
    early, late = (x[:, 0] * directions[0]).sum(1), (x[:, -1] * directions[1]).sum(1)
    score = early - late + 0.4 * early * (x[:, 2] * directions[2]).sum(1)
    label = torch.bucketize(score + 0.15 * torch.randn(count), torch.tensor([-0.7, 0.7]))
    return x.flatten(1), label


def make_step(model, optimizer, criterion):
    def step(x, y):
        model.train()
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.item()

    return step


def endless(x, y, size):
    while True:
        for rows in torch.randperm(len(x)).split(size):
            yield x[rows], y[rows]


directions = nn.functional.normalize(torch.randn(3, FEATURES), dim=1) * 1.2
(x, y), (x_val, y_val) = frames(6000, directions), frames(1000, directions)
model = Spotter(partial(Gated, skip=True) if healthy else Gated)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 600)
criterion = nn.CrossEntropyLoss()
step = make_step(model, optimizer, criterion)

for number, batch in zip(range(600), endless(x, y, 64), strict=False):
    loss = step(*batch)
    schedule.step()
    if number % 75 == 74:
        model.eval()
        with torch.no_grad():
            logits = model(x_val)
        accuracy = (logits.argmax(1) == y_val).float().mean().item()
        val_loss = criterion(logits, y_val).item()
        print(
            f"step {number + 1} loss {loss:.3f} val loss {val_loss:.3f} val accuracy {accuracy:.3f}"
        )
print(f"validation accuracy {accuracy:.3f}")
