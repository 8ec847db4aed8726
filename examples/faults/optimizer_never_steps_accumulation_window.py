"""Tones in noise; gradients are accumulated over 32 batches, but an epoch has 25 and the counter
starts anew in each.

`(i + 1) % accumulate == 0` is never true, so the optimizer never steps; what was gathered is thrown
away at the start of the next epoch. The loss stays where it is. The place is the loop. Exact.
"""

import math

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

KIND = "optimizer_never_steps"
ACCEPT = ()
PLACE = ("loop", "optimizer", "")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


def tones(n, length=200, rate=1000):
    """Clips of one of four tones with an overtone."""
    label = torch.randint(0, 4, (n,))
    base = torch.tensor([60.0, 85.0, 120.0, 170.0])[label].unsqueeze(1)
    base = base * (1 + 0.04 * torch.randn(n, 1))
    t = torch.arange(length) / rate
    phase = 2 * math.pi * torch.rand(n, 1)
    clip = torch.sin(2 * math.pi * base * t + phase) + 0.4 * torch.sin(4 * math.pi * base * t)
    clip = clip + 0.7 * torch.randn(n, length)
    return clip.unsqueeze(1), label


class Trainer:
    def __init__(self, model, train_set, val_set, batch_size=16, accumulate=32, lr=3e-3):
        self.model = model
        self.train_loader = DataLoader(train_set, batch_size=batch_size, shuffle=True)
        self.val_loader = DataLoader(val_set, batch_size=100)
        self.accumulate = accumulate
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr)

    def train_epoch(self):
        self.model.train()
        self.optimizer.zero_grad()
        seen = 0.0
        for i, (clips, labels) in enumerate(self.train_loader):
            loss = F.cross_entropy(self.model(clips), labels)
            (loss / self.accumulate).backward()
            if (i + 1) % self.accumulate == 0:
                self.optimizer.step()
                self.optimizer.zero_grad()
            seen += loss.item()
        return seen / len(self.train_loader)

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        right = sum((self.model(c).argmax(1) == y).sum().item() for c, y in self.val_loader)
        return right / len(self.val_loader.dataset)

    def fit(self, epochs):
        for epoch in range(epochs):
            loss = self.train_epoch()
            print(f"[{epoch:02d}] train {loss:.3f}  val accuracy {self.validate():.3f}")


model = nn.Sequential(
    nn.Conv1d(1, 12, 15, stride=3),
    nn.ReLU(),
    nn.Conv1d(12, 24, 9, stride=2),
    nn.ReLU(),
    nn.AdaptiveMaxPool1d(1),
    nn.Flatten(),
    nn.Linear(24, 4),
)
train_set, val_set = random_split(TensorDataset(*tones(600)), [400, 200])
Trainer(model, train_set, val_set, accumulate=5 if healthy else 32).fit(epochs=24)
