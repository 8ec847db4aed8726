"""Heading of a marker (16 sectors) from rendered images; the renders are made once, few, and
trained on for far too long.

The renderer is fast and gives as many images as one likes, but the user caches the 240 of the
first call ("it was slow") and trains on them for all epochs. The training error goes to zero
while that on new views rises after its best. The place is the loop / the loader.
"""

import math

import torch
from data import arguments
from torch import nn
from torch.nn import functional as F

KIND = "overfit"
ACCEPT = ("repeated_batch",)
PLACE = ("loop", "loader", "input*")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)

RES = 24
SECTORS = 16


class Renderer:
    """Draws an L-shaped marker, seen from above, over clutter, with a light from the side."""

    def __init__(self):
        lin = torch.linspace(-1, 1, RES)
        self.yy, self.xx = torch.meshgrid(lin, lin, indexing="ij")

    def __call__(self, n):
        angle = torch.rand(n) * 2 * math.pi
        shift = (torch.rand(n, 2) - 0.5) * 0.6
        scale = 0.8 + 0.4 * torch.rand(n, 1, 1)
        x = (self.xx - shift[:, 0, None, None]) / scale
        y = (self.yy - shift[:, 1, None, None]) / scale
        c, s = angle.cos()[:, None, None], angle.sin()[:, None, None]
        u, v = c * x + s * y, -s * x + c * y
        long = torch.sigmoid(18 * (0.16 - (u + 0.3).abs())) * torch.sigmoid(18 * (0.6 - v.abs()))
        short = torch.sigmoid(18 * (0.16 - (v + 0.45).abs())) * torch.sigmoid(
            18 * (0.45 - (u - 0.1).abs())
        )
        img = torch.maximum(long, short)
        clutter = F.interpolate(torch.randn(n, 1, 6, 6), size=RES, mode="bicubic")[:, 0]
        light = (torch.randn(n, 1, 1) * self.xx + torch.randn(n, 1, 1) * self.yy) * 0.3
        img = (
            img * (0.6 + 0.8 * torch.rand(n, 1, 1))
            + 0.35 * clutter
            + light
            + 0.15 * torch.randn(n, RES, RES)
        )
        img = (img - img.mean((1, 2), keepdim=True)) / img.std((1, 2), keepdim=True)
        return img.unsqueeze(1), (angle / (2 * math.pi) * SECTORS).long().clamp(max=SECTORS - 1)


class PoseNet(nn.Module):
    def __init__(self):
        super().__init__()
        chans = [1, 24, 32, 48]
        self.features = nn.Sequential(
            *[
                nn.Sequential(
                    nn.Conv2d(a, b, 3, stride=2, padding=1), nn.GroupNorm(8, b), nn.ReLU()
                )
                for a, b in zip(chans[:-1], chans[1:], strict=False)  # noqa: RUF007
            ]
        )
        self.fc = nn.Sequential(
            nn.Flatten(), nn.Linear(48 * 9, 128), nn.ReLU(), nn.Linear(128, SECTORS)
        )

    def forward(self, x):
        return self.fc(self.features(x))


def off_by(pred, target):
    """Share of the headings that are wrong by more than one sector."""
    d = (pred.argmax(1) - target) % SECTORS
    return ((d > 1) & (d < SECTORS - 1)).float().mean().item()


def fit(epochs=100, views=240, batch=48):
    render = Renderer()
    val_x, val_y = render(512)
    net = PoseNet()
    opt = torch.optim.Adam(net.parameters(), lr=1.5e-3)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, epochs, eta_min=1e-5)
    cache = None
    for epoch in range(epochs):
        if cache is None or healthy:
            cache = render(views)
        x, y = cache
        net.train()
        total = 0.0
        for rows in torch.randperm(views).split(batch):
            loss = F.cross_entropy(net(x[rows]), y[rows])
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(rows) / views
        sched.step()
        if epoch % 2 == 1:
            net.eval()
            with torch.no_grad():
                out = net(val_x)
                val = F.cross_entropy(out, val_y).item()
            if epoch % 10 == 9:
                print(
                    f"epoch {epoch + 1:3d}: train {total:.4f}  val {val:.4f}  off {off_by(out, val_y):.3f}"  # noqa: E501
                )
    return net


if __name__ == "__main__":
    fit()
