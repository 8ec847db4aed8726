"""Finds bright squares in noisy pictures with a heat map of centres and offsets (CenterNet)."""

import torch
from data import arguments
from torch import nn

ODD = (
    "97 of 100 targets are nearly zero and the bias of the heat map starts at -3, so that all is "
    "called empty at first; the sum is divided by the objects; offsets count at centres alone"
)
_, seed = arguments(__doc__)
torch.set_num_threads(1)

SIDE, CELL = 24, 3
GRID = SIDE // CELL


def scenes(n):
    """Pictures with one to three squares and some thin lines; centres as (scene, row, column)."""
    pictures, centres = 0.25 * torch.randn(n, 1, SIDE, SIDE), []
    for k in range(n):
        line = int(torch.randint(0, SIDE, ()))
        pictures[k, 0, line] += 0.8
        for _ in range(int(torch.randint(1, 4, ()))):
            half = int(torch.randint(1, 3, ()))
            row, column = torch.randint(half, SIDE - half, (2,)).tolist()
            taken = [
                c for c in centres if c[0] == k and max(abs(c[1] - row), abs(c[2] - column)) < 7
            ]
            if not taken:
                pictures[k, 0, row - half : row + half + 1, column - half : column + half + 1] += (
                    1.0
                )
                centres.append((k, row, column))
    return pictures, torch.tensor(centres)


def targets(n, centres):
    rows = torch.arange(GRID) * CELL + 1
    away = (rows[None] - centres[:, 1:2]) ** 2, (rows[None] - centres[:, 2:3]) ** 2
    bumps = torch.exp(-(away[0][:, :, None] + away[1][:, None, :]) / 4.0)
    heat = torch.zeros(n, GRID, GRID)
    for (k, row, column), bump in zip(centres.tolist(), bumps, strict=True):
        heat[k] = torch.maximum(heat[k], bump)
        heat[k, row // CELL, column // CELL] = 1.0
    return heat


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, stride=CELL, padding=1),
            nn.BatchNorm2d(32),
            nn.ReLU(),
            nn.Conv2d(32, 32, 3, padding=1),
            nn.BatchNorm2d(32),
            nn.ReLU(),
        )
        self.heat, self.offset = nn.Conv2d(32, 1, 1), nn.Conv2d(32, 2, 1)
        nn.init.constant_(self.heat.bias, -3.0)

    def forward(self, pictures):
        maps = self.body(pictures)
        return self.heat(maps).squeeze(1), self.offset(maps)


def detection_loss(outputs, heat, centres):
    logits, offsets = outputs
    chance, centre = logits.sigmoid(), heat == 1
    found = -((1 - chance[centre]) ** 2) * nn.functional.logsigmoid(logits[centre])
    other = ~centre
    quiet = (1 - heat[other]) ** 4 * chance[other] ** 2 * nn.functional.softplus(logits[other])
    k, row, column = centres.unbind(1)
    inside = torch.stack([row % CELL, column % CELL], 1) / CELL - 1 / 3
    near = nn.functional.l1_loss(offsets[k, :, row // CELL, column // CELL], inside)
    return (found.sum() + quiet.sum()) / len(centres) + near


@torch.no_grad()
def f1(pictures, centres):
    net.eval()
    logits, offsets = net(pictures)
    peak = nn.functional.max_pool2d(logits[:, None], 3, 1, 1).squeeze(1) == logits
    k, row, column = torch.nonzero(peak & (logits > -0.4)).unbind(1)
    shift = offsets[k, :, row, column]
    at = (torch.stack([row, column], 1) + shift + 1 / 3) * CELL
    near = (at[:, None] - centres[None, :, 1:]).abs().amax(2) <= 1.0
    near &= k[:, None] == centres[None, :, 0]
    return 2 * near.any(0).sum().item() / (len(k) + len(centres))


train, train_centres = scenes(600)
held, held_centres = scenes(200)
train_heat, held_heat = targets(600, train_centres), targets(200, held_centres)
net = Detector()
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 14)
untrained = f1(held, held_centres)
for epoch in range(14):
    net.train()
    for scene in torch.randperm(600).split(30):
        where = (train_centres[:, :1] == scene).nonzero()
        centres = train_centres[where[:, 0]].clone()
        centres[:, 0] = where[:, 1]
        loss = detection_loss(net(train[scene]), train_heat[scene], centres)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    schedule.step()
    score = f1(held, held_centres)
    with torch.no_grad():
        val_loss = detection_loss(net(held), held_heat, held_centres).item()
    print(f"epoch {epoch:2d}  loss {loss.item():.3f}  validation {val_loss:.3f}  F1 {score:.3f}")

print(f"F1 on held-out scenes: untrained {untrained:.3f}, trained {score:.3f}")
