"""Direction of the wind in six hours in one of eight sectors; trained as a number with MSE.

The sectors are numbered from 0 to 7, the script was one for temperatures, and so a single output
is driven to the number and rounded. North (0) and north-west (7) are then the farthest apart, and
between two likely sectors the network says one in the middle.
The place is the loss and the output. The twin has eight outputs and cross-entropy.
"""

import math

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "wrong_loss"
ACCEPT = ()
PLACE = ("loss*", "out", "output*", "label*")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


def stations(n, g):
    angle = 2 * math.pi * torch.rand(n, generator=g)
    turn = 0.6 * torch.randn(n, generator=g)
    later = angle + turn + 0.2 * torch.randn(n, generator=g)
    seen = [angle - k * 0.4 * turn + 0.15 * torch.randn(n, generator=g) for k in range(4)]
    x = torch.cat([torch.stack([a.sin(), a.cos()], 1) for a in seen], 1) * 1.4
    sector = ((later / (math.pi / 4)).round().long()) % 8
    return x, sector


class WindNet(nn.Module):
    def __init__(self, outputs):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
        self.out = nn.Linear(64, outputs)

    def forward(self, x):
        return self.out(self.body(x))


x, y = stations(3000, torch.Generator().manual_seed(seed))
loader = DataLoader(TensorDataset(x[:2400], y[:2400]), batch_size=40, shuffle=True)
model = WindNet(8 if healthy else 1)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(10):
    total = 0.0
    for xb, yb in loader:
        out = model(xb)
        if healthy:
            loss = nn.functional.cross_entropy(out, yb)
        else:
            loss = nn.functional.mse_loss(out.squeeze(1), yb.float())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / len(loader)
    with torch.no_grad():
        out = model(x[2400:])
    said = out.argmax(1) if healthy else out.squeeze(1).round().long()
    print(f"epoch {epoch}: loss {total:.3f} right {(said == y[2400:]).float().mean():.3f}")
