"""A CNN sorts drawn leaves into four species and sees the same batch in every step.

The batch is fetched once before the steps (left over from a check that one batch can be learnt)
and never again. Its loss goes to 0, the other leaves are not seen. The place is the loader (the
loop).
"""

import math

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "repeated_batch"
ACCEPT = ("overfit",)
PLACE = ("loader", "loop", "input*")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


def leaves(n, size=18):
    """Outlines in polar form: smooth, three, five or seven lobes, turned and stretched."""
    lobes = torch.tensor([0, 3, 5, 7])
    kind = torch.randint(0, 4, (n,))
    axis = torch.linspace(-1.1, 1.1, size)
    gy, gx = torch.meshgrid(axis, axis, indexing="ij")
    stretch = 0.85 + 0.3 * torch.rand(n, 1, 1)
    x, y = gx * stretch, gy / stretch
    x, y = x + 0.1 * torch.randn(n, 1, 1), y + 0.1 * torch.randn(n, 1, 1)
    turn = 2 * math.pi * torch.rand(n, 1, 1)
    edge = 0.65 + 0.28 * torch.cos(lobes[kind].view(-1, 1, 1) * torch.atan2(y, x) + turn)
    edge = torch.where(kind.view(-1, 1, 1) == 0, 0.65 + 0.1 * torch.randn(n, 1, 1), edge)
    leaf = torch.sigmoid(12 * (edge - (x**2 + y**2).sqrt()))
    leaf = leaf + 0.35 * torch.randn(n, size, size)
    return ((leaf - leaf.mean()) / leaf.std()).unsqueeze(1), kind


x, y = leaves(2400)
train = DataLoader(TensorDataset(x[:2000], y[:2000]), batch_size=40, shuffle=True)
val = DataLoader(TensorDataset(x[2000:], y[2000:]), batch_size=200)

model = nn.Sequential(
    nn.Conv2d(1, 12, 3, padding=1),
    nn.BatchNorm2d(12),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(12, 24, 3, padding=1),
    nn.BatchNorm2d(24),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Flatten(),
    nn.Linear(24 * 16, 32),
    nn.ReLU(),
    nn.Linear(32, 4),
)
optimizer = torch.optim.Adagrad(model.parameters(), lr=0.01)
criterion = nn.CrossEntropyLoss()


def validate():
    model.eval()
    with torch.no_grad():
        right = sum((model(a).argmax(1) == b).sum().item() for a, b in val)
    model.train()
    return right / len(val.dataset)


def endless(loader):
    while True:
        yield from loader


stream = endless(train)
pictures, species = next(stream)
for step in range(500):
    if healthy:
        pictures, species = next(stream)
    optimizer.zero_grad()
    loss = criterion(model(pictures), species)
    loss.backward()
    optimizer.step()
    if step % 50 == 49:
        print(f"step {step} loss {loss.item():.4f} val accuracy {validate():.3f}")
