"""Where are the beacons? Their positions are parameters in UTM metres, in float32.

At five million metres float32 has a resolution of half a metre: Adam's steps of 5 cm are rounded
away, and the beacons stay where they were guessed. The twin takes float64. The loss falls by the
delays, which do learn (silent). The place is the positions.
"""

import torch
from data import arguments
from torch import nn

KIND = "low_precision_updates_lost"
ACCEPT = ("input_not_normalized",)
PLACE = ("beacons*", "")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
dtype = torch.float64 if healthy else torch.float32
ORIGIN = torch.tensor([4_468_300.0, 5_334_700.0], dtype=torch.float64)  # zone and east, north
N_BEACONS, N_FIXES = 25, 6000

true_xy = ORIGIN + 400 * torch.rand(N_BEACONS, 2, dtype=torch.float64)
delay = 2 * torch.randn(N_BEACONS, dtype=torch.float64)
fix_xy = ORIGIN + 400 * torch.rand(N_FIXES, 2, dtype=torch.float64)
beacon = torch.randint(0, N_BEACONS, (N_FIXES,))
ranges = (
    (fix_xy - true_xy[beacon]).norm(dim=1)
    + delay[beacon]
    + 0.5 * torch.randn(N_FIXES, dtype=torch.float64)
)
guess_xy = true_xy + 6 * torch.randn(N_BEACONS, 2, dtype=torch.float64)  # from the site plan


class Beacons(nn.Module):
    def __init__(self, guess):
        super().__init__()
        self.position = nn.Parameter(guess.clone())
        self.delay = nn.Parameter(torch.zeros(len(guess), dtype=guess.dtype))

    def forward(self, xy, beacon):
        return (xy - self.position[beacon]).norm(dim=1) + self.delay[beacon]


class Survey(nn.Module):
    def __init__(self, guess):
        super().__init__()
        self.beacons = Beacons(guess)

    def forward(self, xy, beacon):
        return self.beacons(xy, beacon)


fix_xy, ranges = fix_xy.to(dtype), ranges.to(dtype)
train, val = slice(0, 5000), slice(5000, None)
model = Survey(guess_xy.to(dtype))
optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
loss_fn = nn.HuberLoss(delta=2.0)
for epoch in range(17):
    total = 0.0
    for rows in torch.randperm(5000).split(100):
        loss = loss_fn(model(fix_xy[rows], beacon[rows]), ranges[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / 50
    with torch.no_grad():
        val_loss = loss_fn(model(fix_xy[val], beacon[val]), ranges[val]).item()
        error = (model.beacons.position.double() - true_xy).norm(dim=1).mean().item()
    print(f"epoch {epoch}: loss {total:.4f} val {val_loss:.4f} mean position error {error:.2f} m")
