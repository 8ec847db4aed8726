"""Brightness of variable stars, night after night; one night the detector was saturated.

The pipeline trains on the stream of nights in their order. In one of them counts were written that
are hundreds of times as large as they should be (the shutter hung open); the flag for it is in the
header and nobody reads it. The loss jumps at this night and takes long to come down again.
The place is the input of that night (the loader gives it out). The twin skips flagged nights.
"""

import torch
from data import arguments
from torch import nn

KIND = "loss_spike"
ACCEPT = ("exploding_gradient",)
PLACE = ("input*", "loader", "loss*")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)


def observe(nights: int, stars: int = 48, length: int = 24):
    """Yields (header, light curves up to now, next magnitude) for every night."""
    hung = int(0.8 * nights)
    for night in range(nights):
        period = 4 + 12 * torch.rand(stars, 1)
        phase = 6.283 * torch.rand(stars, 1)
        t = torch.arange(length + 1)
        curve = torch.sin(6.283 * t / period + phase)
        curve = curve + 0.4 * torch.sin(2 * (6.283 * t / period + phase))
        curve = (0.5 + torch.rand(stars, 1)) * curve + 0.05 * torch.randn(stars, length + 1)
        header = {"night": night, "quality": "ok"}
        if night == hung:
            header["quality"] = "saturated"
            curve = 400 * curve.abs()
        yield header, curve[:, :-1], curve[:, -1]


class LightCurveNet(nn.Module):
    def __init__(self, length: int, hidden: int = 64):
        super().__init__()
        self.lift = nn.Linear(length, hidden)
        self.deep = nn.Linear(hidden, hidden)
        self.next = nn.Linear(hidden, 1)

    def forward(self, curve):
        h = self.lift(curve).relu()
        return self.next(h + self.deep(h).relu()).squeeze(-1)


net = LightCurveNet(24)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
_, curves_val, next_val = next(observe(5, stars=1000))

average = None
for header, curves, following in observe(900):
    if healthy and header["quality"] != "ok":
        continue
    loss = (net(curves) - following).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    average = loss.item() if average is None else 0.95 * average + 0.05 * loss.item()
    if header["night"] % 60 == 59:
        with torch.no_grad():
            rms = (net(curves_val) - next_val).square().mean().sqrt().item()
        print(f"night {header['night'] + 1:4d} loss {average:.4f} validation rms {rms:.4f}")
