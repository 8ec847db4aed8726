"""Steering is cloned from the log of a long lap, given to the network in the order of the drive.

Whole batches come from one bend, so the batch norms see one curvature at a time and each stretch of
road overwrites what was learnt on the last. The loss of the batches looks small; on another lap the
error is a multiple of a shuffled training's. The place is the loader: the order of the rows.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "unshuffled_data"
ACCEPT = ()
PLACE = ("loader", "input", "loop", "labels")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

WIDTH, HEIGHT, FRAMES = 16, 8, 1600


def lap(g):
    """One lap: frames (FRAMES, 1, HEIGHT, WIDTH) of the road ahead and the driver's steering."""
    fixed = torch.Generator().manual_seed(21)
    bends = torch.randn(10, generator=fixed).repeat_interleave(FRAMES // 10)
    curvature = F.avg_pool1d(F.pad(bends[None], (10, 10), "circular"), 21, 1)[0]
    offset = 0.25 * torch.randn(FRAMES // 20, generator=g).repeat_interleave(20)
    depth = torch.linspace(1, 0, HEIGHT)
    middle = curvature[:, None] * depth**2 * 0.55 + offset[:, None] * (1 - depth)
    across = torch.linspace(-1.5, 1.5, WIDTH)
    road = torch.exp(-(((across - middle[:, :, None]) / 0.3) ** 2))
    light = 0.7 + 0.6 * torch.rand(FRAMES, 1, 1, generator=g)
    frames = light * road + 0.25 * torch.randn(FRAMES, HEIGHT, WIDTH, generator=g)
    steering = curvature + 0.8 * offset + 0.05 * torch.randn(FRAMES, generator=g)
    return {"frame": frames.unsqueeze(1), "steering": steering}


class Driver(nn.Module):
    def __init__(self):
        super().__init__()
        self.eye = nn.Sequential(
            nn.Conv2d(1, 12, 3, padding=1),
            nn.BatchNorm2d(12),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(12, 24, 3, padding=1),
            nn.BatchNorm2d(24),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.hand = nn.Sequential(nn.Linear(24 * 8, 48), nn.ReLU(), nn.Linear(48, 1))

    def forward(self, frame):
        return self.hand(self.eye(frame).flatten(1)).squeeze(1)


def drive_through(log, g, size=32):
    n = len(log["steering"])
    order = torch.randperm(n, generator=g) if healthy else torch.arange(n)
    for rows in order.split(size):
        yield {key: value[rows] for key, value in log.items()}


g = torch.Generator().manual_seed(seed)
log, other = lap(g), lap(g)
scale = {key: (log[key].mean(), log[key].std()) for key in log}
for part in (log, other):
    for key, (mean, std) in scale.items():
        part[key] = (part[key] - mean) / std

model = Driver()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(7):
    model.train()
    total = 0.0
    for batch in drive_through(log, g):
        loss = F.mse_loss(model(batch["frame"]), batch["steering"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(batch["steering"])
    model.eval()
    with torch.no_grad():
        error = F.mse_loss(model(other["frame"]), other["steering"]).item()
    print(
        f"epoch {epoch + 1}  training lap {total / len(log['steering']):.4f}  other lap {error:.4f}"
    )
