"""A GRU writes strings of molecules character by character; the training ends while the loss
still falls fast.

The number of epochs was set for a quick look and stayed so. The place is the loop (its number of
epochs).
"""

import random

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "stopped_too_early"
ACCEPT = ()
PLACE = ("loop",)
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)
ALPHABET = "$CNOFSc1()=#Brl"
NUMBER = {c: i for i, c in enumerate(ALPHABET)}
LENGTH = 28


def molecule(r):
    """A chain of groups in a notation like SMILES: ring numbers close, brackets match."""
    parts = []
    while len("".join(parts)) < 14:
        parts.append(
            r.choices(
                ["C", "N", "O", "c1ccccc1", "C(=O)", "C#N", "C(Cl)", "C(Br)", "S", "C1CCCC1"],
                [6, 2, 2, 3, 3, 1, 1, 1, 1, 2],
            )[0]
        )
    return "".join(parts)


def strings(n, r):
    rows = [("$" + molecule(r) + "$" * LENGTH)[: LENGTH + 1] for _ in range(n)]
    return torch.tensor([[NUMBER[c] for c in row] for row in rows])


class Writer(nn.Module):
    def __init__(self, width=80):
        super().__init__()
        self.letters = nn.Embedding(len(ALPHABET), 24)
        self.memory = nn.GRU(24, width, batch_first=True)
        self.next = nn.Linear(width, len(ALPHABET))

    def forward(self, s):
        return self.next(self.memory(self.letters(s))[0])


def nats(model, s):
    """Cross-entropy per character, up to the first end mark."""
    wanted = s[:, 1:]
    real = ((wanted == 0).cumsum(1) <= 1).float()
    each = F.cross_entropy(model(s[:, :-1]).transpose(1, 2), wanted, reduction="none")
    return (each * real).sum() / real.sum()


class Trainer:
    def __init__(self, model, train, val):
        self.model, self.train, self.val = model, train, val
        self.optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def run(self, epochs):
        for epoch in range(epochs):
            self.model.train()
            for step, rows in enumerate(torch.randperm(len(self.train)).split(32)):
                loss = nats(self.model, self.train[rows])
                self.optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
                self.optimizer.step()
                if step % 20 == 0:
                    print(f"epoch {epoch} step {step} loss {loss.item():.4f}")
            self.model.eval()
            with torch.no_grad():
                print(
                    f"epoch {epoch} val nats per character {nats(self.model, self.val).item():.4f}"
                )


r = random.Random(seed)
train, val = strings(2560, r), strings(500, r)
epochs = 10 if healthy else 2
Trainer(Writer(), train, val).run(epochs)
