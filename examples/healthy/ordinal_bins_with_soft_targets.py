"""Age of trees by their bark, in ten bins whose targets are soft: a neighbour bin gets a share.

The loss cannot fall below the entropy of the soft targets, about 0.8, and the probabilities stay
far from 1. That is meant: the mean over the bins is the age.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = "soft targets over neighbouring bins: the cross-entropy has a floor far above zero"

_, seed = arguments(__doc__)
BINS = torch.arange(10.0)


def bark(n, g):
    age = 9 * torch.rand(n, generator=g)
    t = torch.arange(40.0)
    depth = 0.3 + 0.1 * age[:, None]
    x = depth * torch.sin((2.2 - 0.15 * age[:, None]) * t + 6.28 * torch.rand(n, 1, generator=g))
    return (x + 0.25 * torch.randn(n, 40, generator=g)) / 0.7, age


def soften(age):
    return (-((BINS - age[:, None]) ** 2) / 0.5).softmax(1)


model = nn.Sequential(
    nn.Unflatten(1, (1, 40)),
    nn.Conv1d(1, 24, 7, padding=3),
    nn.ReLU(),
    nn.Conv1d(24, 32, 5, padding=2),
    nn.ReLU(),
    nn.AdaptiveMaxPool1d(2),
    nn.Flatten(),
    nn.Linear(64, 10),
)
x, age = bark(2500, torch.Generator().manual_seed(seed))
train = DataLoader(TensorDataset(x[:2000], age[:2000]), batch_size=40, shuffle=True)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
for epoch in range(8):
    total = 0.0
    for xb, ages in train:
        loss = nn.functional.cross_entropy(model(xb), soften(ages))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / len(train)
    with torch.no_grad():
        said = (model(x[2000:]).softmax(1) * BINS).sum(1)
        off = (said - age[2000:]).abs().mean().item()
    print(f"epoch {epoch}: loss {total:.3f}, off by {off:.2f} decades")
