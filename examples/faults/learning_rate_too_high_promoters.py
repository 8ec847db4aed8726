"""A small transformer finds promoters in DNA; Adam's learning rate is 0.3.

The rate was taken from an experiment with SGD. The loss jumps far above its start and stays at
chance. The place is the optimizer.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "learning_rate_too_high"
ACCEPT = ("bad_optimizer_settings", "saturated_activation")
PLACE = ("optimizer",)
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)
LENGTH = 36


def sequences(n, g):
    """DNA, half of it with the two boxes of a promoter (with mutations), about 8 letters apart."""
    s = torch.randint(0, 4, (n, LENGTH), generator=g)
    y = torch.randint(0, 2, (n,), generator=g)
    boxes = (torch.tensor([3, 3, 2, 0, 1, 0]), torch.tensor([3, 0, 3, 0, 0, 3]))
    for i in range(n):
        first = int(torch.randint(0, 12, (1,), generator=g))
        gap = 7 + int(torch.randint(0, 3, (1,), generator=g))
        for box, start in zip(boxes, (first, first + 6 + gap), strict=True):
            letters = torch.where(
                torch.rand(6, generator=g) < 0.08, torch.randint(0, 4, (6,), generator=g), box
            )
            if y[i] or torch.rand(1, generator=g) < 0.1:
                s[i, start : start + 6] = letters
    return s, y


class Layer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.attend = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.think = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, h):
        n = self.norm1(h)
        h = h + self.attend(n, n, n, need_weights=False)[0]
        return h + self.think(self.norm2(h))


class Promoter(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.letters, self.places = (
            nn.Embedding(4, dim),
            nn.Parameter(0.02 * torch.randn(LENGTH, dim)),
        )
        self.motif = nn.Conv1d(dim, dim, 6, padding="same")
        self.layers = nn.Sequential(Layer(dim, 4), Layer(dim, 4))
        self.norm, self.verdict = nn.LayerNorm(dim), nn.Linear(dim, 2)

    def forward(self, s):
        h = self.letters(s)
        h = F.gelu(self.motif(h.transpose(1, 2))).transpose(1, 2) + self.places
        return self.verdict(self.norm(self.layers(h)).mean(1))


class Trainer:
    def __init__(self, model, lr):
        self.model, self.optimizer = model, torch.optim.Adam(model.parameters(), lr=lr)

    def fit(self, train, val, epochs):
        s, y = train
        for epoch in range(epochs):
            self.model.train()
            total = 0.0
            for rows in torch.randperm(len(s)).split(50):
                loss = F.cross_entropy(self.model(s[rows]), y[rows])
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                total += loss.item() * len(rows) / len(s)
            self.model.eval()
            with torch.no_grad():
                logits = self.model(val[0])
            hit = (logits.argmax(1) == val[1]).float().mean().item()
            val_loss = F.cross_entropy(logits, val[1]).item()
            print(f"epoch {epoch} loss {total:.4f} val {val_loss:.4f} accuracy {hit:.3f}")


g = torch.Generator().manual_seed(seed)
train, val = sequences(1500, g), sequences(500, g)
Trainer(Promoter(), lr=1e-3 if healthy else 0.3).fit(train, val, 8)
