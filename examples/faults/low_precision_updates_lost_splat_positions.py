"""Gaussian splats of a picture keep their positions, in pixels, in bfloat16, and Adam moves them by
0.03.

Between 32 and 64 the next bfloat16 number is 0.25 away, between 8 and 16 it is 0.06: the step is
rounded back and the blobs stay where they were scattered. Heights and sizes learn; the picture
stays wrong. The place is the splats' positions.
"""

import torch
from data import arguments
from torch import nn

KIND = "low_precision_updates_lost"
ACCEPT = ()
PLACE = ("position*", "optimizer", "")
SILENT = True
EXACT = True
EARLY = True

healthy, _ = arguments(__doc__)
SIDE, BLOBS, SPLATS = 56, 14, 36
DTYPE = torch.float32 if healthy else torch.bfloat16
axis = torch.arange(SIDE) + 0.5


def draw(position, size, height):
    gx = torch.exp(-0.5 * ((axis - position[:, :1]) / size[:, None]) ** 2)
    gy = torch.exp(-0.5 * ((axis - position[:, 1:]) / size[:, None]) ** 2)
    return (gy * height[:, None]).T @ gx


class Splats(nn.Module):
    def __init__(self):
        super().__init__()
        start = torch.rand(SPLATS, 2) * SIDE
        self.position = nn.Parameter(start.to(DTYPE))
        self.log_size = nn.Parameter(torch.full((SPLATS,), 1.2))
        self.height = nn.Parameter(torch.zeros(SPLATS))
        nn.init.normal_(self.height, std=0.05)

    def forward(self):
        return draw(self.position.float(), self.log_size.exp(), self.height)


picture = draw(
    4 + torch.rand(BLOBS, 2) * (SIDE - 8), 2 + 2 * torch.rand(BLOBS), 0.5 + torch.rand(BLOBS)
)
picture = picture / picture.std() + 0.05 * torch.randn(SIDE, SIDE)

splats = Splats()
optimizer = torch.optim.Adam(
    [
        {"params": [splats.position], "lr": 3e-2},
        {"params": [splats.log_size], "lr": 1e-2},
        {"params": [splats.height], "lr": 2e-2},
    ]
)
for step in range(600):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(splats(), picture)
    loss.backward()
    optimizer.step()
    if step % 100 == 99:
        print(f"step {step + 1}: loss {loss.item():.4f} of variance {picture.var().item():.3f}")
