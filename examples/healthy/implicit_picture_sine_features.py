"""One picture as a function of its coordinates: Fourier features of large frequency, fixed by
design.
"""

import math

import torch
from data import arguments
from torch import nn

ODD = (
    "the first projection is a buffer of random numbers that is never trained; training and "
    "held-out pixels are of one picture"
)

_, seed = arguments(__doc__)


class FourierNet(nn.Module):
    def __init__(self, features=64, scale=1.0, width=96):
        super().__init__()
        self.register_buffer("frequencies", scale * torch.randn(2, features))
        self.mlp = nn.Sequential(
            nn.Linear(2 * features, width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Linear(width, 1),
            nn.Sigmoid(),
        )

    def forward(self, xy):
        angle = 2 * math.pi * xy @ self.frequencies
        return self.mlp(torch.cat([angle.sin(), angle.cos()], -1)).squeeze(-1)


side = 48
axis = torch.linspace(-1, 1, side)
v, u = torch.meshgrid(axis, axis, indexing="ij")
picture = (
    0.5
    + 0.2 * torch.sin(7 * u + 3 * v)
    + 0.2 * torch.cos(9 * v * u) * torch.sigmoid(12 * (0.6 - u * u - v * v))
)
picture = picture + 0.015 * torch.randn_like(picture)
xy, gray = torch.stack([u, v], -1).view(-1, 2), picture.clamp(0, 1).view(-1)
order = torch.randperm(len(xy))
train, held_out = order[: len(xy) * 3 // 4], order[len(xy) * 3 // 4 :]

model = FourierNet()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 500, eta_min=1e-5)
for step in range(1, 501):
    model.train()
    rows = train[torch.randint(len(train), (512,))]
    loss = nn.functional.mse_loss(model(xy[rows]), gray[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    if step % 50 == 0:
        model.eval()
        with torch.no_grad():
            error = nn.functional.mse_loss(model(xy[held_out]), gray[held_out]).item()
        print(f"step {step} loss {loss.item():.5f} held-out PSNR {-10 * math.log10(error):.1f} dB")
