"""Layers pretrained one by one on digits are tuned as a whole, with all but the head still frozen.

Each layer is frozen while the next is pretrained, and nothing thaws them for the tuning that was
meant to reach the whole network. Only the linear head learns, on codes made for reconstruction.
The place is the parameters of encoder.
"""

import itertools

import torch
import torch.nn.functional as F
from data import arguments, digits
from torch import nn

KIND = "frozen_parameters"
ACCEPT = ()
PLACE = ("encoder*",)
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

WIDTHS = (64, 32, 16, 6)
CONFIG = {"pretrain_epochs": 6, "tune_epochs": 25, "batch": 32}


class Stack(nn.Module):
    def __init__(self, classes=10):
        super().__init__()
        self.encoder = nn.ModuleList(nn.Linear(a, b) for a, b in itertools.pairwise(WIDTHS))
        self.head = nn.Linear(WIDTHS[-1], classes)

    def encode(self, x, depth):
        for layer in self.encoder[:depth]:
            x = F.leaky_relu(layer(x), 0.1)
        return x

    def forward(self, x):
        return self.head(self.encode(x, len(self.encoder)))


def minibatches(n, g):
    return torch.randperm(n, generator=g).split(CONFIG["batch"])


def pretrain(model, x, g):
    for depth, layer in enumerate(model.encoder):
        decoder = nn.Linear(layer.out_features, layer.in_features)
        optimizer = torch.optim.Adam([*layer.parameters(), *decoder.parameters()], lr=2e-3)
        with torch.no_grad():
            below = model.encode(x, depth)
        for _ in range(CONFIG["pretrain_epochs"]):
            for rows in minibatches(len(x), g):
                code = F.leaky_relu(layer(below[rows]), 0.1)
                loss = F.mse_loss(decoder(code), below[rows])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        layer.requires_grad_(False)
        print(f"layer {depth}: reconstruction {loss.item():.4f}")


def tune(model, x, y, x_val, y_val, g):
    if healthy:
        model.requires_grad_(True)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, weight_decay=1e-4)
    for epoch in range(CONFIG["tune_epochs"]):
        model.train()
        total = 0.0
        for rows in minibatches(len(x), g):
            loss = F.cross_entropy(model(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows)
        model.eval()
        with torch.no_grad():
            scores = model(x_val)
        right = (scores.argmax(1) == y_val).float().mean().item()
        if epoch % 5 == 4:
            print(
                f"epoch {epoch + 1:2d}  train {total / len(x):.4f}  "
                f"val {F.cross_entropy(scores, y_val).item():.4f}  right {right:.3f}"
            )


def main():
    g = torch.Generator().manual_seed(seed)
    x, y, x_val, y_val = digits(seed)
    model = Stack()
    pretrain(model, x, g)
    tune(model, x, y, x_val, y_val, g)


main()
