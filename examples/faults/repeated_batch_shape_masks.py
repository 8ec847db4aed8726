"""Marks which pixels belong to a disc; every step sees the same first batch.

The loop was once over epochs and then became one over steps: `next(iter(loader))` builds a new
iterator each time, and as the loader does not shuffle, it hands out the first batch for ever.
The place is the loop, where the batch is taken. The twin keeps one iterator over a shuffling
loader's epochs.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "repeated_batch"
ACCEPT = ("overfit",)
PLACE = ("loop", "loader", "input*")
SILENT = True
EXACT = True
EARLY = True


def draw(n, g, size=20):
    """Discs on noise with bright and dark stripes across; the masks of the discs."""
    axis = torch.arange(size).float()
    centre = 4 + 12 * torch.rand(n, 2, generator=g)
    radius = 2.5 + 3 * torch.rand(n, 1, 1, generator=g)
    rows = (axis.view(1, -1, 1) - centre[:, :1, None]) ** 2
    cols = (axis.view(1, 1, -1) - centre[:, 1:, None]) ** 2
    mask = ((rows + cols).sqrt() < radius).float()
    tilt = 1.5 * torch.rand(n, 2, 1, 1, generator=g)
    stripes = torch.sin(tilt[:, 0] * axis.view(1, -1, 1) + tilt[:, 1] * axis.view(1, 1, -1))
    sign = torch.where(torch.rand(n, 1, 1, generator=g) < 0.5, -1.0, 1.0)
    image = sign * mask + 0.7 * stripes + 0.35 * torch.randn(n, size, size, generator=g)
    return image.unsqueeze(1), mask.unsqueeze(1)


def block(a, b):
    return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.ReLU())


class TinyUNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = block(1, 12)
        self.middle = nn.Sequential(block(12, 24), block(24, 24))
        self.up = block(36, 12)
        self.out = nn.Conv2d(12, 1, 1)

    def forward(self, x):
        fine = self.down(x)
        coarse = self.middle(nn.functional.max_pool2d(fine, 2))
        coarse = nn.functional.interpolate(coarse, scale_factor=2)
        return self.out(self.up(torch.cat([fine, coarse], 1)))


def endless(loader):
    while True:
        yield from loader


def dice(logits, mask):
    found = (logits > 0).float()
    return (2 * (found * mask).sum() / (found.sum() + mask.sum()).clamp(min=1)).item()


healthy, seed = arguments(__doc__)
g = torch.Generator().manual_seed(seed)
x, y = draw(480, g)
x_val, y_val = draw(120, g)
loader = DataLoader(TensorDataset(x, y), batch_size=12, shuffle=healthy)
stream = endless(loader)
net = TinyUNet()
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
for step in range(1, 301):
    images, masks = next(stream) if healthy else next(iter(loader))
    optimizer.zero_grad()
    loss = criterion(net(images), masks)
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        with torch.no_grad():
            logits = net(x_val)
        val = criterion(logits, y_val).item()
        print(f"{step} loss {loss.item():.3f} val {val:.3f} dice {dice(logits, y_val):.3f}")
