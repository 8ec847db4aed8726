"""Activation checkpointing (the reentrant kind) around the first block, whose input needs no
gradient.

The block is run again under a node that nothing asks for gradients: its weights never get any. The
layers behind it train on random features; accuracy stays well below. The place is the stem.
"""

import warnings

import torch
from data import arguments, images
from torch import nn
from torch.utils.checkpoint import checkpoint

KIND = "detached_graph"
ACCEPT = ()
PLACE = ("stem*",)
SILENT = True
EXACT = True
EARLY = True

warnings.filterwarnings("ignore")
healthy, seed = arguments(__doc__)


class CheckpointedNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(8, 8, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(8, 6, 3, stride=2, padding=1),
            nn.ReLU(),
        )
        self.body = nn.Sequential(nn.Flatten(), nn.Linear(24, 32), nn.ReLU())
        self.head = nn.Linear(32, 10)

    def forward(self, pixels):
        h = checkpoint(self.stem, pixels, use_reentrant=not healthy)
        h = checkpoint(self.body, h, use_reentrant=not healthy)
        return self.head(h)


x, y, x_val, y_val = images(seed)
model = CheckpointedNet()
optim = torch.optim.Adam(model.parameters(), lr=3e-3)
warm = torch.optim.lr_scheduler.LinearLR(optim, 0.1, 1.0, total_iters=30)
for epoch in range(16):
    model.train()
    for rows in torch.randperm(len(x)).split(48):
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        optim.zero_grad()
        loss.backward()
        optim.step()
        warm.step()
    model.eval()
    with torch.no_grad():
        accuracy = (model(x_val).argmax(1) == y_val).float().mean().item()
print(f"loss {loss.item():.3f}, validation accuracy {accuracy:.3f}")
