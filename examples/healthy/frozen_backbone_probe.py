"""Few labelled letters: the backbone, trained before, is frozen on purpose and only a head learns.

People ask why most parameters get no gradient and never change. They are meant not to: with 150
labelled pictures the head of a few hundred weights is all that should be fitted, and the frozen
part stays in eval mode and outside the optimizer.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = "most parameters never change and have no gradient: the backbone is frozen on purpose"
_, seed = arguments(__doc__)

SIDE = 12
SIGNS = {
    "Z": [(1, 2, 1, 8), (1, 8, 8, 2), (8, 2, 8, 8)],
    "N": [(1, 2, 8, 2), (1, 2, 8, 8), (1, 8, 8, 8)],
    "E": [(1, 2, 8, 2), (1, 2, 1, 7), (4, 2, 4, 6), (8, 2, 8, 7)],
    "Y": [(1, 2, 4, 5), (1, 8, 4, 5), (4, 5, 8, 5)],
    "U": [(1, 2, 8, 2), (8, 2, 8, 8), (1, 8, 8, 8)],
    "P": [(1, 2, 8, 2), (1, 2, 1, 7), (1, 7, 4, 7), (4, 2, 4, 7)],
    "A": [(1, 5, 8, 2), (1, 5, 8, 8), (6, 3, 6, 7)],
    "D": [(1, 2, 8, 2), (1, 2, 4, 8), (4, 8, 8, 2)],
}
LETTERS = {
    "L": [(1, 2, 8, 2), (8, 2, 8, 7)],
    "T": [(1, 2, 1, 8), (1, 5, 8, 5)],
    "V": [(1, 2, 8, 5), (1, 8, 8, 5)],
    "X": [(1, 2, 8, 8), (1, 8, 8, 2)],
    "H": [(1, 2, 8, 2), (1, 8, 8, 8), (4, 2, 4, 8)],
}


def draw(strokes, rng):
    canvas = np.zeros((SIDE, SIDE))
    shift = rng.integers(0, 3, 2)
    for top, left, bottom, right in strokes:
        for part in np.linspace(0, 1, 16):
            row = top + part * (bottom - top) + rng.normal(0, 0.15) + shift[0]
            column = left + part * (right - left) + rng.normal(0, 0.15) + shift[1]
            canvas[int(np.clip(row, 0, SIDE - 1)), int(np.clip(column, 0, SIDE - 1))] = 1
    return (canvas + rng.normal(0, 0.2, canvas.shape) - 0.12) / 0.35


def pictures_of(glyphs, count, rng):
    labels = rng.integers(0, len(glyphs), count)
    strokes = list(glyphs.values())
    pictures = np.array([draw(strokes[i], rng) for i in labels])
    return torch.tensor(pictures).float().unsqueeze(1), torch.tensor(labels)


def make_backbone():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(288, 64),
        nn.ReLU(),
    )


def train_epoch(network, loader, optimizer):
    total = 0.0
    for x, y in loader:
        loss = nn.functional.cross_entropy(network(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(y)
    return total / len(loader.dataset)


def main():
    rng = np.random.default_rng(seed)
    backbone = make_backbone()
    before = nn.Sequential(backbone, nn.Linear(64, len(SIGNS)))
    optimizer = torch.optim.Adam(before.parameters(), lr=2e-3)
    loader = DataLoader(TensorDataset(*pictures_of(SIGNS, 1600, rng)), batch_size=50, shuffle=True)
    for epoch in range(6):
        before.train()
        print(f"signs   epoch {epoch} loss {train_epoch(before, loader, optimizer):.3f}")

    backbone.eval().requires_grad_(False)
    head = nn.Linear(64, len(LETTERS))
    network = nn.Sequential(backbone, head)
    optimizer = torch.optim.AdamW(head.parameters(), lr=1e-2, weight_decay=0.02)
    few = DataLoader(TensorDataset(*pictures_of(LETTERS, 150, rng)), batch_size=25, shuffle=True)
    x_val, y_val = pictures_of(LETTERS, 600, rng)
    for epoch in range(40):
        head.train()
        loss = train_epoch(network, few, optimizer)
        if epoch % 8 == 7:
            with torch.no_grad():
                accuracy = (network(x_val).argmax(1) == y_val).float().mean()
            print(f"letters epoch {epoch:2d} loss {loss:.3f} val acc {accuracy:.3f}")


main()
