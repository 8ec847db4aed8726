"""Gestures from an accelerometer, 1-D CNN ported from Keras: momentum 0.99 of the BatchNorms.

Keras counts momentum the other way round: 0.99 there is 0.01 here. Ported as it stood, the running
statistics are those of the last batch alone, which at the end of an epoch has four windows: the
evaluation is a lottery from epoch to epoch. The place is the batch norms. The twin translates it
to 1 - 0.9.
"""

from itertools import pairwise

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "batchnorm_momentum"
ACCEPT = ()
PLACE = ("blocks.0.1", "blocks.1.1", "blocks.2.1", "blocks", "head.1", "head")
SILENT = True
EXACT = True
EARLY = False

healthy, seed = arguments(__doc__)
KERAS = {"filters": (16, 32, 32), "bn_momentum": 0.9 if healthy else 0.99, "bn_eps": 1e-3}
BN_MOMENTUM = 1 - KERAS["bn_momentum"] if healthy else KERAS["bn_momentum"]


def gestures(n, rng, length=48):
    kind = rng.integers(0, 5, n)
    t = np.linspace(0, 1, length)
    x = np.zeros((n, 3, length), dtype=np.float32)
    for i, k in enumerate(kind):
        strength, phase = rng.lognormal(0, 0.9), rng.uniform(0, 6.28)
        x[i, 0] = strength * np.sin(2 * np.pi * (1 + k) * t + phase)
        x[i, 1] = strength * np.cos(2 * np.pi * (1 + k % 3) * t + phase)
        x[i, 2] = rng.normal(0, 1.5) + 0.2 * k * t
    return torch.tensor(x + rng.normal(0, 0.4, x.shape).astype(np.float32)), torch.tensor(kind)


def block(inside, outside):
    return nn.Sequential(
        nn.Conv1d(inside, outside, 5, padding=2, bias=False),
        nn.BatchNorm1d(outside, eps=KERAS["bn_eps"], momentum=BN_MOMENTUM),
        nn.ReLU(),
        nn.MaxPool1d(2),
    )


class GestureNet(nn.Module):
    def __init__(self, classes=5):
        super().__init__()
        sizes = (3, *KERAS["filters"])
        self.blocks = nn.Sequential(*(block(a, b) for a, b in pairwise(sizes)))
        self.head = nn.Sequential(
            nn.Linear(sizes[-1], 32, bias=False),
            nn.BatchNorm1d(32, eps=KERAS["bn_eps"], momentum=BN_MOMENTUM),
            nn.ReLU(),
            nn.Linear(32, classes),
        )

    def forward(self, x):
        return self.head(self.blocks(x).mean(2))


rng = np.random.default_rng(seed)
train = DataLoader(TensorDataset(*gestures(1028, rng)), batch_size=32, shuffle=True)
x_val, y_val = gestures(400, rng)
model = GestureNet()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 14)
for epoch in range(14):
    model.train()
    total = 0.0
    for x, y in train:
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / len(train)
    schedule.step()
    model.eval()
    with torch.no_grad():
        logits = model(x_val)
    val_loss = nn.functional.cross_entropy(logits, y_val)
    accuracy = (logits.argmax(1) == y_val).float().mean()
    print(f"epoch {epoch:2d} loss {total:.3f} val {val_loss:.3f} accuracy {accuracy:.3f}")
