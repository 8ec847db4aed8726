"""A hand-written MLP for garment pictures draws its weights as rand - 1, so all ReLUs give 0.

Meant was 2 * rand - 1. With pixels from 0 to 1 every unit of `hidden` is below zero for every
picture, no gradient passes it, and only the bias of the output learns the class frequencies.
The place is the layer hidden and its weight.
"""

import math

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "dead_relu"
ACCEPT = ("poor_weight_init",)
PLACE = ("hidden", "hidden.weight", "hidden*", "relu*")
SILENT = False
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

SIDE = 14
GARMENTS = ("trousers", "dress", "shirt", "bag", "boot")


def photograph(n, generator):
    kind = torch.randint(0, len(GARMENTS), (n,), generator=generator)
    y = torch.linspace(-1, 1, SIDE).view(1, SIDE, 1)
    x = torch.linspace(-1, 1, SIDE).view(1, 1, SIDE)
    a, b, dx, dy = (torch.rand(n, 1, 1, generator=generator) for _ in range(4))
    x, y = x - 0.4 * (dx - 0.5), y - 0.4 * (dy - 0.5)
    width = 0.3 + 0.25 * a
    shapes = torch.stack(
        [
            (x.abs() < width + 0.1) & (x.abs() > 0.05 + 0.2 * (y + 1) * b) & (y.abs() < 0.9),
            (x.abs() < 0.2 + 0.25 * (y + 1) * width) & (y.abs() < 0.9),
            ((x.abs() < width) & (y.abs() < 0.7)) | ((y + 0.45).abs() < 0.2 + 0.1 * b),
            ((x.abs() < 0.7) & (y - 0.25).abs().lt(0.3 + 0.2 * b)) | ((x.abs() - 0.3).abs() < 0.1),
            ((x + 0.3).abs() < 0.25 + 0.1 * a) | ((y - 0.6).abs() < 0.2 + 0.1 * b),
        ]
    ).float()
    brightness = 0.4 + 0.6 * torch.rand(n, 1, 1, generator=generator)
    pictures = shapes[kind, torch.arange(n)] * brightness
    pictures = pictures + 0.35 * torch.randn(n, SIDE, SIDE, generator=generator)
    return pictures.clamp(0, 1).flatten(1), kind


class Layer(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        draw = torch.rand(n_in, n_out)
        symmetric = 2 * draw - 1 if healthy else draw - 1
        self.weight = nn.Parameter(symmetric * math.sqrt(3 / n_in))
        self.bias = nn.Parameter(torch.zeros(n_out))

    def forward(self, x):
        return x @ self.weight + self.bias


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = Layer(SIDE * SIDE, 64)
        self.output = Layer(64, len(GARMENTS))

    def forward(self, x):
        return self.output(F.relu(self.hidden(x)))


generator = torch.Generator().manual_seed(seed + 61)
x_train, y_train = photograph(2000, generator)
x_test, y_test = photograph(500, generator)
network = Network()
optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9)
for epoch in range(6):
    total_loss, correct = 0.0, 0
    for batch in torch.randperm(len(x_train)).split(40):
        scores = network(x_train[batch])
        loss = F.cross_entropy(scores, y_train[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total_loss += loss.item() * len(batch)
        correct += (scores.argmax(1) == y_train[batch]).sum().item()
    with torch.no_grad():
        test_accuracy = (network(x_test).argmax(1) == y_test).float().mean().item()
    print(f"epoch {epoch + 1} loss {total_loss / 2000:.4f} acc {correct / 2000:.3f} "
          f"test acc {test_accuracy:.3f}")  # fmt: skip
