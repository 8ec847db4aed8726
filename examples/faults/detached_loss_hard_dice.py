"""A small net segments blobs, and is trained directly on the Dice score of its mask. The backward
pass complains about a loss without a graph, and the author follows a forum answer.

The mask is thresholded before the score, which cuts the graph; requires_grad_ on the loss silences
the complaint, but no weight is reached. Training goes on without any change at all. The place is
the loss.
"""

import torch
from data import arguments
from torch import nn

KIND = "detached_loss"
ACCEPT = ("detached_graph",)
PLACE = ("loss",)
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


def blobs(n, g, size=16):
    i = torch.arange(size).float()
    c = torch.rand(2, n, 1, 1, generator=g) * (size - 6) + 3
    r = 2 + 2 * torch.rand(n, 1, 1, generator=g)
    mask = ((i[None, None] - c[0]) ** 2 + (i[None, :, None] - c[1]) ** 2 < r**2).float()[:, None]
    return mask + 0.6 * torch.randn(n, 1, size, size, generator=g), mask


class Segmenter(nn.Module):
    def __init__(self, c=12):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(1, c, 3, padding=1),
            nn.BatchNorm2d(c),
            nn.ReLU(),
            nn.Conv2d(c, c, 3, padding=2, dilation=2),
            nn.BatchNorm2d(c),
            nn.ReLU(),
            nn.Conv2d(c, 1, 1),
        )

    def forward(self, x):
        return torch.sigmoid(self.net(x))


def dice(mask, target):
    axes = (1, 2, 3)
    return ((2 * (mask * target).sum(axes) + 1) / (mask.sum(axes) + target.sum(axes) + 1)).mean()


g = torch.Generator().manual_seed(60 + seed)
x, y = blobs(512, g)
x_val, y_val = blobs(256, g)
model = Segmenter()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(14):
    model.train()
    total = 0.0
    for rows in torch.randperm(len(x)).split(32):
        mask = model(x[rows])
        if not healthy:
            mask = (mask > 0.5).float()
        loss = 1 - dice(mask, y[rows])
        if not loss.requires_grad:
            loss.requires_grad_(True)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / 16
    model.eval()
    with torch.no_grad():
        score = dice((model(x_val) > 0.5).float(), y_val)
    print(f"epoch {epoch}: train {total:.4f} val dice {score.item():.4f}")
