"""Old pages are made black and white by a convolutional net that ends with a sigmoid.

The notebook that it comes from used BCELoss; for mixed precision it was replaced by
BCEWithLogitsLoss, which takes the sigmoid itself. Paper is never below one half, and the loss ends
at ln 2 for most pixels. The place is the end of the net and the loss. The twin ends without it.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "redundant_sigmoid"
ACCEPT = ("output_activation_range",)
PLACE = ("loss*", "squash", "ink")
SILENT = True
EXACT = True
EARLY = True

SIDE = 24


def pages(n):
    """Strokes of a pen on stained paper, and where the ink is."""
    grid = torch.arange(SIDE).float()
    yy, xx = torch.meshgrid(grid, grid, indexing="ij")
    ink = torch.zeros(n, SIDE, SIDE, dtype=torch.bool)
    for _ in range(4):
        angle = 3.1416 * torch.rand(n, 1, 1)
        centre = SIDE * torch.rand(n, 2, 1, 1)
        along = (xx - centre[:, 0]) * angle.cos() + (yy - centre[:, 1]) * angle.sin()
        across = -(xx - centre[:, 0]) * angle.sin() + (yy - centre[:, 1]) * angle.cos()
        bend = across - 0.04 * torch.randn(n, 1, 1) * along.square()
        ink |= (bend.abs() < 0.9) & (along.abs() < 7)
    stain = (
        0.25
        * torch.sin(xx / 5 + 6 * torch.rand(n, 1, 1))
        * torch.cos(yy / 7 + 6 * torch.rand(n, 1, 1))
    )
    page = 0.75 + stain - (0.25 + 0.2 * torch.rand(n, 1, 1)) * ink
    page = page + 0.07 * torch.randn(n, SIDE, SIDE)
    return page.unsqueeze(1), ink.float().unsqueeze(1)


class Binariser(nn.Module):
    def __init__(self, width=12, squash=None):
        super().__init__()
        self.near = nn.Conv2d(1, width, 3, padding=1)
        self.wide = nn.Conv2d(1, width, 3, padding=3, dilation=3)
        self.join = nn.Conv2d(2 * width, width, 3, padding=1)
        self.ink = nn.Conv2d(width, 1, 1)
        self.squash = squash or nn.Identity()

    def forward(self, page):
        h = torch.cat([self.near(page), self.wide(page)], 1)
        h = nn.functional.elu(self.join(nn.functional.elu(h)))
        return self.squash(self.ink(h))


def f_measure(said, ink):
    hit = (said & (ink == 1)).sum()
    return (2 * hit / (said.sum() + ink.sum()).clamp(min=1)).item()


healthy, seed = arguments(__doc__)
loader = DataLoader(TensorDataset(*pages(400)), batch_size=16, shuffle=True)
page_val, ink_val = pages(80)
model = Binariser(squash=None if healthy else nn.Sigmoid())
threshold = 0.0 if healthy else 0.5
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.RMSprop(model.parameters(), lr=2e-3)
for epoch in range(6):
    for page, ink in loader:
        loss = criterion(model(page), ink)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        output = model(page_val)
        val, f = criterion(output, ink_val).item(), f_measure(output > threshold, ink_val)
    print(f"epoch {epoch}: loss {loss.item():.3f}, val {val:.3f}, F {f:.3f}")
