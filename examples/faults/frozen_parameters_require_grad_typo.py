"""The head is trained alone for a moment; then the backbone is set free with p.require_grad = True.

The attribute is called requires_grad. The line makes a new one, without a word, and the backbone
keeps its random weights for the whole training. The place is the backbone. The loss hardly falls:
random filters, averaged, say little (not silent). Exact: nothing there ever requires a gradient.
"""

import torch
from data import arguments
from torch import nn

KIND = "frozen_parameters"
ACCEPT = ()
PLACE = ("backbone*",)
SILENT = False
EXACT = True
EARLY = False

healthy, seed = arguments(__doc__)


def spots(n, g):
    """Photographs of leaves: the disease is told by texture, not by brightness or place."""
    y = torch.randint(0, 4, (n,), generator=g)
    yy, xx = torch.meshgrid(torch.arange(16.0), torch.arange(16.0), indexing="ij")
    angle = y * 0.785 + 0.15 * torch.randn(n, generator=g)
    along = xx * angle.cos()[:, None, None] + yy * angle.sin()[:, None, None]
    phase = 6.283 * torch.rand(n, 1, 1, generator=g)
    x = torch.sin(1.5 * along + phase) * 0.7 + torch.randn(n, 16, 16, generator=g)
    colour = torch.rand(n, 3, 1, 1, generator=g)
    x = x[:, None] * (0.5 + colour)
    return x / x.std(), y


class Leaves(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(3, 8, 5, stride=2, padding=2),
            nn.ReLU(),
            nn.Conv2d(8, 12, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(12, 16, 3, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
        )
        self.head = nn.Linear(16, 4)

    def forward(self, x):
        return self.head(self.backbone(x))


def run_epoch(model, optimizer, x, y, g):
    model.train()
    total = 0.0
    for rows in torch.randperm(len(x), generator=g).split(40):
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows)
    return total / len(x)


@torch.no_grad()
def accuracy(model, x, y):
    model.eval()
    return (model(x).argmax(1) == y).float().mean().item()


g = torch.Generator().manual_seed(seed)
x, y = spots(1200, g)
x_val, y_val = spots(400, g)
model = Leaves()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

for p in model.backbone.parameters():
    p.requires_grad = False
for epoch in range(9):
    if epoch == 1:
        for p in model.backbone.parameters():
            if healthy:
                p.requires_grad = True
            else:
                p.require_grad = True
    loss = run_epoch(model, optimizer, x, y, g)
    print(f"epoch {epoch} loss {loss:.3f} held-out accuracy {accuracy(model, x_val, y_val):.3f}")
