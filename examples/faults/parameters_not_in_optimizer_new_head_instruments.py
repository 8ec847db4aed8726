"""Fine-tunes a net for instrument sounds on six new instruments; the new head is never trained.

The net was trained for three shapes of tone; its last layer is exchanged for one with six outputs.
The optimizer was made a few lines earlier, from the old parameters, so it holds the old head, and
the new one stays as it was drawn. The rest learns to work around it.
The place is the optimizer, which lacks `head`.
The twin makes the optimizer after the head was exchanged.
"""

import torch
import torch.nn.functional as F
from data import arguments, waves
from torch import nn

KIND = "parameters_not_in_optimizer"
ACCEPT = ("frozen_parameters",)
PLACE = ("head", "optimizer")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


class Listener(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Conv1d(1, 12, 7, padding=3),
            nn.ReLU(),
            nn.Conv1d(12, 12, 5, padding=2, stride=2),
            nn.ReLU(),
            nn.AdaptiveAvgPool1d(1),
            nn.Flatten(),
        )
        self.head = nn.Linear(12, classes)

    def forward(self, x):
        return self.head(self.trunk(x))


def fit(model, optimizer, x, y, epochs, name):
    n = len(x) * 3 // 4
    for epoch in range(epochs):
        model.train()
        total = 0.0
        for rows in torch.randperm(n).split(32):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x[rows]), y[rows])
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows)
        model.eval()
        with torch.no_grad():
            right = (model(x[n:]).argmax(1) == y[n:]).float().mean().item()
        print(f"{name} {epoch}: loss {total / n:.3f} accuracy {right:.3f}")


def six_instruments():
    """The three shapes, each bright (with a strong third overtone) or soft."""
    x, shape = waves(seed + 50, n=1000, length=48)
    bright = torch.randint(0, 2, (1000,))
    wobble = 0.6 * torch.sin(2.2 * torch.arange(48) + 6.28 * torch.rand(1000, 1))
    x = x.transpose(1, 2) + (bright[:, None] * wobble).unsqueeze(1)
    return x, shape + 3 * bright


x, y = waves(seed, n=800, length=48)
model = Listener(3)
fit(model, torch.optim.Adam(model.parameters(), lr=3e-3), x.transpose(1, 2), y, 4, "first task")

if healthy:
    model.head = nn.Linear(12, 6)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
else:
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    model.head = nn.Linear(12, 6)
fit(model, optimizer, *six_instruments(), 14, "fine-tuning")
