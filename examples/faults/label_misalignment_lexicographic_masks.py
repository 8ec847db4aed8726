"""Cell segmentation with a small U-Net; images are read in the order of names, masks in that of
numbers.

`sorted()` on "cell_10.png" puts it before "cell_2.png", while the masks come from a table that is
sorted by its integer column. Nothing fails: as many images as masks, all of one shape. Nearly every
image is paired with the mask of another, so the net learns the average mask. The place is the
pairing in `read_folder`: the labels. The twin sorts both by the number in the name.
"""

import re

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "label_misalignment"
ACCEPT = ()
PLACE = ("label*", "loss*", "loader")
SILENT = False
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)


def microscope(count, size=20):
    """Names with an image each, a table of masks by number: one to three round cells on noise."""
    grid = torch.stack(
        torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij"), -1
    ).float()
    images, masks = {}, {}
    for i in range(count):
        cells = int(torch.randint(1, 4, ()))
        center, radius = 2 + torch.rand(cells, 2) * (size - 5), 2 + 2 * torch.rand(cells)
        far = (grid[:, :, None] - center).norm(dim=-1)
        mask = (far < radius).any(-1)
        glow = torch.exp(-((far / radius) ** 2)).amax(-1)
        shade = 0.3 * grid[..., 0] / size
        images[f"cell_{i}.png"] = (glow + shade + 0.25 * torch.randn(size, size) - 0.5)[None]
        masks[i] = mask.float()[None]
    return images, masks


def number(name):
    return int(re.search(r"\d+", name).group())


def read_folder(images, masks):
    names = sorted(images, key=number if healthy else None)
    return torch.stack([images[name] for name in names]), torch.stack(
        [masks[i] for i in sorted(masks)]
    )


class UNet(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(1, width, 3, padding=1), nn.ReLU())
        self.middle = nn.Sequential(
            nn.Conv2d(width, 2 * width, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(2 * width, width, 3, padding=1),
            nn.ReLU(),
        )
        self.up = nn.Sequential(
            nn.Conv2d(2 * width, width, 3, padding=1), nn.ReLU(), nn.Conv2d(width, 1, 1)
        )

    def forward(self, x):
        fine = self.down(x)
        coarse = F.interpolate(self.middle(F.max_pool2d(fine, 2)), scale_factor=2)
        return self.up(torch.cat([fine, coarse], 1))


def dice(logits, masks):
    found = (logits > 0).float()
    return (2 * (found * masks).sum() / (found.sum() + masks.sum()).clamp(min=1)).item()


x, y = read_folder(*microscope(640))
x, x_val, y, y_val = x[:480], x[480:], y[:480], y[480:]
net = UNet()
optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 6e-3, total_steps=14 * 20)

for epoch in range(14):
    net.train()
    total = 0.0
    for rows in torch.randperm(480).split(24):
        loss = F.binary_cross_entropy_with_logits(net(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        total += loss.item() / 20
    net.eval()
    with torch.no_grad():
        logits = net(x_val)
    val_loss = F.binary_cross_entropy_with_logits(logits, y_val).item()
    print(
        f"epoch {epoch:2d} loss {total:.3f} val loss {val_loss:.3f} "
        f"val dice {dice(logits, y_val):.3f}"
    )
print(f"validation dice {dice(logits, y_val):.3f}")
