"""Learns the temperature field of a heated plate; twenty tanh layers without the skip paths.

The net was meant to be residual. In `forward` the block's output replaces the running value
instead of being added to it, so twenty tanh layers of default weights follow one another, and
next to nothing of the gradient reaches the first ones.
The place is the stack of `blocks`.
The twin adds the skip paths.
"""

import torch
from data import arguments
from torch import nn

KIND = "vanishing_gradient"
ACCEPT = ("poor_weight_init",)
PLACE = ("blocks", "stem", "blocks.0", "blocks.1", "blocks.2", "blocks.3")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


class Plate(nn.Module):
    def __init__(self, width=32, depth=20):
        super().__init__()
        self.stem = nn.Linear(2, width)
        self.blocks = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.out = nn.Linear(width, 1)

    def forward(self, place):
        h = torch.tanh(self.stem(place))
        for block in self.blocks:
            h = h + torch.tanh(block(h)) if healthy else torch.tanh(block(h))
        return self.out(h).squeeze(-1)


def measured(n):
    place = 2 * torch.rand(n, 2) - 1
    a, b = place.unbind(1)
    heat = torch.sin(2.5 * a) * torch.cos(2 * b) + torch.exp(-6 * ((a - 0.3) ** 2 + b**2))
    return place, heat - 0.22 + 0.03 * torch.randn(n)


place, heat = measured(1500)
grid, truth = measured(400)
model = Plate()
optimizer = torch.optim.SGD(model.parameters(), lr=0.002, momentum=0.9)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=400)

for step in range(400):
    rows = torch.randint(0, 1500, (64,))
    loss = (model(place[rows]) - heat[rows]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    optimizer.step()
    scheduler.step()
    if (step + 1) % 80 == 0:
        with torch.no_grad():
            error = (model(grid) - truth).square().mean().item()
        print(f"{step + 1:4d} batch {loss.item():.4f} grid {error:.4f}")
