"""Finds the functional groups in a molecule's spectrum; several may be there, the loss allows one.

The script began with molecules of a single group. For molecules with several, the label became a
row of zeros and ones, and cross_entropy took it without a word. It shares one probability out
among the groups, while the validation asks each group's score for itself.
The place is the loss.
The twin has a yes-or-no loss for each group.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "wrong_loss"
ACCEPT = ()
PLACE = ("loss*", "output*", "label*")
SILENT = True
EXACT = False
EARLY = True

GROUPS = ("hydroxyl", "carbonyl", "amine", "nitrile", "ether", "aromatic")
PLACES = (10, 26, 14, 20, 36, 30)
WIDTHS = (3.0, 1.5, 2.0, 1.0, 2.5, 1.5)


def spectra(n, generator):
    there = (torch.rand(n, len(GROUPS), generator=generator) < 0.35).float()
    axis = torch.arange(48.0)
    x = 0.1 * torch.randn(n, 48, generator=generator)
    for i, (place, width) in enumerate(zip(PLACES, WIDTHS, strict=False)):
        where = place + 0.7 * torch.randn(n, 1, generator=generator)
        height = 0.3 + 0.7 * torch.rand(n, 1, generator=generator)
        x = x + there[:, i : i + 1] * height * torch.exp(-(((axis - where) / width) ** 2))
    return (x - 0.07) / 0.22, there


def f1(found, there):
    both = (found & there).sum(0)
    return (2 * both / (found.sum(0) + there.sum(0)).clamp(min=1)).mean().item()


def train(model, loader, val, loss_function, epochs=12):
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    for epoch in range(1, epochs + 1):
        model.train()
        total = 0.0
        for x, there in loader:
            loss = loss_function(model(x), there)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        model.eval()
        with torch.no_grad():
            found = model(val[0]).sigmoid() > 0.5
        score = f1(found, val[1] > 0.5)
        if epoch % 2 == 0:
            print(f"epoch {epoch}: loss {total / len(loader):.3f}, validation F1 {score:.3f}")


if __name__ == "__main__":
    healthy, seed = arguments(__doc__)
    g = torch.Generator().manual_seed(seed)
    loader = DataLoader(TensorDataset(*spectra(2500, g)), batch_size=64, shuffle=True)
    val = spectra(700, g)
    model = nn.Sequential(nn.Linear(48, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, len(GROUPS)))
    train(model, loader, val, nn.BCEWithLogitsLoss() if healthy else nn.CrossEntropyLoss())
