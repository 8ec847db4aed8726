"""Sorting 12-pixel pictures of snow crystals, accumulating gradients: an epoch is shorter than a
window.

The micro-batch grew from 16 to 64 to use the new machine, and nobody touched `accumulate = 12`. An
epoch has ten micro-batches now, the count begins again with every epoch, and the gradients are
cleared at its start: the optimizer is never stepped. The place is the loop. The twin accumulates
two.
"""

import math

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "optimizer_never_steps"
ACCEPT = ()
PLACE = ("loop",)
SILENT = False
EXACT = True
EARLY = False

healthy, seed = arguments(__doc__)
CONFIG = {"micro_batch": 64, "accumulate": 2 if healthy else 12, "epochs": 40, "lr": 3e-3}


class Crystals(Dataset):
    """Discs whose rim has three, four, six or no arms, turned at random."""

    ARMS = (0, 3, 4, 6)

    def __init__(self, count, g):
        axis = torch.linspace(-1, 1, 12)
        yy, xx = torch.meshgrid(axis, axis, indexing="ij")
        self.kind = torch.randint(0, 4, (count,), generator=g)
        arms = torch.tensor(self.ARMS)[self.kind].view(-1, 1, 1)
        turn = 2 * math.pi * torch.rand(count, 1, 1, generator=g)
        depth = torch.where(arms > 0, 0.35, 0.0)
        rim = 0.6 + depth * torch.cos(arms * (torch.atan2(yy, xx) + turn))
        picture = torch.sigmoid(8 * (rim - (xx**2 + yy**2).sqrt()))
        self.picture = (picture + 0.15 * torch.randn(picture.shape, generator=g) - 0.4).unsqueeze(
            1
        ) / 0.4

    def __len__(self):
        return len(self.kind)

    def __getitem__(self, row):
        return self.picture[row], self.kind[row]


def network(width=16):
    return nn.Sequential(
        nn.Conv2d(1, width, 3, padding=1),
        nn.GroupNorm(4, width),
        nn.GELU(),
        nn.MaxPool2d(2),
        nn.Conv2d(width, 2 * width, 3, padding=1),
        nn.GroupNorm(4, 2 * width),
        nn.GELU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.2),
        nn.Linear(2 * width * 9, 4),
    )


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    right = sum((model(picture).argmax(1) == kind).sum().item() for picture, kind in loader)
    return right / len(loader.dataset)


g = torch.Generator().manual_seed(seed)
train = DataLoader(Crystals(640, g), CONFIG["micro_batch"], shuffle=True)
held = DataLoader(Crystals(500, g), 250)
model, criterion = network(), nn.CrossEntropyLoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=CONFIG["lr"], weight_decay=0.05)
for epoch in range(CONFIG["epochs"]):
    model.train()
    optimizer.zero_grad()
    total = 0.0
    for count, (picture, kind) in enumerate(train, 1):
        loss = criterion(model(picture), kind)
        (loss / CONFIG["accumulate"]).backward()
        if count % CONFIG["accumulate"] == 0:
            optimizer.step()
            optimizer.zero_grad()
        total += loss.item() / len(train)
    if epoch % 5 == 4:
        print(f"epoch {epoch + 1} loss {total:.4f} validation accuracy {evaluate(model, held):.3f}")
