"""A network finds where in a scan the mark is and cuts a small window out around it; a second one
reads the window. The window is cut by rounded positions.

int() and slicing have no gradient: the localiser never learns and stays where it was initialised.
The reader learns what it can from windows in the middle (silent). The place is the localiser. The
twin cuts by grid_sample, through which the position gets its gradient.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "detached_graph"
ACCEPT = ()
PLACE = ("localiser*",)
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
SIZE, WINDOW = 24, 10
MARKS = torch.zeros(4, 7, 7)
MARKS[0, 3, :] = MARKS[0, :, 3] = 1  # plus
MARKS[1] = torch.eye(7).maximum(torch.eye(7).flip(1))  # cross
MARKS[2, 0, :] = MARKS[2, 6, :] = MARKS[2, :, 0] = MARKS[2, :, 6] = 1  # frame
MARKS[3, :, 1] = MARKS[3, :, 5] = 1  # bars


def scans(n, g):
    x = 0.35 * torch.randn(n, 1, SIZE, SIZE, generator=g)
    y = torch.randint(0, len(MARKS), (n,), generator=g)
    corner = torch.randint(0, SIZE - 6, (n, 2), generator=g)
    for i in range(n):
        r, c = corner[i].tolist()
        x[i, 0, r : r + 7, c : c + 7] += MARKS[y[i]]
    return x, y


class Localiser(nn.Module):
    """A heat map and its centre of mass, in coordinates from -1 to 1."""

    def __init__(self):
        super().__init__()
        self.heat = nn.Sequential(
            nn.Conv2d(1, 8, 5, padding=2), nn.ReLU(), nn.Conv2d(8, 1, 5, padding=2)
        )
        self.register_buffer("axis", torch.linspace(-1, 1, SIZE))

    def forward(self, x):
        p = self.heat(x).flatten(1).mul(4).softmax(1).view(-1, SIZE, SIZE)
        return torch.stack([p.sum(1) @ self.axis, p.sum(2) @ self.axis], 1)


class HardCrop(nn.Module):
    def forward(self, x, centre):
        windows = []
        for scan, (cx, cy) in zip(x, ((centre + 1) / 2 * (SIZE - 1)).tolist(), strict=True):
            left = min(max(round(cx) - WINDOW // 2, 0), SIZE - WINDOW)
            top = min(max(round(cy) - WINDOW // 2, 0), SIZE - WINDOW)
            windows.append(scan[:, top : top + WINDOW, left : left + WINDOW])
        return torch.stack(windows)


class SoftCrop(nn.Module):
    def forward(self, x, centre):
        scale = torch.eye(2).expand(len(x), 2, 2) * (WINDOW / SIZE)
        theta = torch.cat([scale, centre.unsqueeze(2)], 2)
        grid = F.affine_grid(theta, (len(x), 1, WINDOW, WINDOW), align_corners=False)
        return F.grid_sample(x, grid, align_corners=False)


class MarkReader(nn.Module):
    def __init__(self):
        super().__init__()
        self.localiser = Localiser()
        self.crop = SoftCrop() if healthy else HardCrop()
        self.reader = nn.Sequential(
            nn.Conv2d(1, 12, 3), nn.ReLU(), nn.Flatten(), nn.Linear(12 * 64, 48), nn.ReLU(),
            nn.Linear(48, len(MARKS)),
        )  # fmt: skip

    def forward(self, x):
        return self.reader(self.crop(x, self.localiser(x)))


g = torch.Generator().manual_seed(seed)
x, y = scans(3000, g)
x_val, y_val = scans(600, g)
model = MarkReader()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(8):
    for rows in torch.randperm(len(x)).split(60):
        loss = F.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        accuracy = (model(x_val).argmax(1) == y_val).float().mean().item()
    print(f"epoch {epoch} loss {loss.item():.3f} val accuracy {accuracy:.3f}")
