"""Sorts photographs of drill cores by rock; the batches come in the order of the folders.

The files lie in one folder a rock, and the loader reads them one folder after the other. Each
stretch of batches has a single rock in it, the network says that rock for everything, and has
forgotten the first rocks by the end of the epoch.
The place is the loader.
The twin lets the loader shuffle.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "unshuffled_data"
ACCEPT = ()
PLACE = ("loader", "input*")
SILENT = True
EXACT = False
EARLY = True

ROCKS = ("granite", "gneiss", "slate", "sandstone", "conglomerate", "basalt")


def picture(rock, g):
    """A grey picture of 16 by 16 points with the grain or the bands of the rock."""
    row, column = torch.meshgrid(torch.arange(16.0), torch.arange(16.0), indexing="ij")
    angle = 0.6 * torch.randn((), generator=g)
    across = row * angle.cos() + column * angle.sin()
    shift = 6 * torch.rand((), generator=g)
    grain = torch.randn(1, 1, 16, 16, generator=g)
    coarse = nn.functional.avg_pool2d(grain, 5, 1, 2)[0, 0] * 4
    fine = grain[0, 0] * 0.7
    look = {
        "granite": fine + 0.4 * coarse,
        "gneiss": (across * 0.9 + shift).sin() + 0.4 * fine,
        "slate": (across * 2.2 + shift).sin() * 0.6 + 0.2 * fine,
        "sandstone": 0.5 * fine + 0.3,
        "conglomerate": coarse + 0.2 * fine,
        "basalt": 0.35 * fine - 0.5,
    }[rock]
    return (look + 0.3 * torch.randn((), generator=g))[None]


class Cores(Dataset):
    def __init__(self, each, generator):
        self.items = [
            (picture(rock, generator), number)
            for number, rock in enumerate(ROCKS)
            for _ in range(each)
        ]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def make_model():
    return nn.Sequential(
        nn.Conv2d(1, 12, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(12, 24, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(24 * 16, 32), nn.ReLU(), nn.Linear(32, len(ROCKS)),
    )  # fmt: skip


def main():
    healthy, seed = arguments(__doc__)
    g = torch.Generator().manual_seed(seed)
    train = DataLoader(Cores(150, g), batch_size=30, shuffle=healthy)
    val = DataLoader(Cores(60, g), batch_size=120)
    model = make_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(10):
        model.train()
        total = 0.0
        for pictures, rocks in train:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(pictures), rocks)
            loss.backward()
            optimizer.step()
            total += loss.item()
        model.eval()
        with torch.no_grad():
            right = sum((model(p).argmax(1) == rock).sum().item() for p, rock in val)
        print(f"epoch {epoch}: loss {total / len(train):.3f}, val {right / len(val.dataset):.3f}")


main()
