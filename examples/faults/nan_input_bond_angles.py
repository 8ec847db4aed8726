"""Angles between the bonds of made-up molecules are features of a net for their energy.

The arc cosine of a dot product of unit vectors is NaN where rounding takes it past 1, as in
straight bonds. The twin clamps it. The place is the input.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "nan_input"
ACCEPT = ()
PLACE = ("input", "loader")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


def chains(n, atoms=7):
    """Chains of atoms; one bond in five goes straight on."""
    bonds = F.normalize(torch.randn(n, atoms - 1, 3), dim=-1)
    for k in range(1, atoms - 1):
        straight = torch.rand(n) < 0.2
        bonds[straight, k] = bonds[straight, k - 1]
    lengths = 1.0 + 0.15 * torch.randn(n, atoms - 1, 1)
    return torch.cat([torch.zeros(n, 1, 3), (bonds * lengths).cumsum(1)], 1)


def features(positions):
    bonds = positions[:, 1:] - positions[:, :-1]
    lengths = bonds.norm(dim=-1)
    units = bonds / lengths.unsqueeze(-1)
    cosines = (units[:, 1:] * units[:, :-1]).sum(-1)
    if healthy:
        cosines = cosines.clamp(-1, 1)
    return torch.stack([(lengths[:, 1:] - 1) / 0.15, torch.acos(cosines) - 1.3], -1)


def energy(positions):
    bonds = positions[:, 1:] - positions[:, :-1]
    lengths = bonds.norm(dim=-1)
    cosines = F.cosine_similarity(bonds[:, 1:], bonds[:, :-1], dim=-1).clamp(-1, 1)
    e = 12 * (lengths[:, 1:] - 1).pow(2).sum(1) + (cosines - 0.3).pow(2).sum(1)
    return (e - 3.6) / 1.5


class AngleNet(nn.Module):
    """One network for every angle; the energies of the angles add up."""

    def __init__(self):
        super().__init__()
        self.term = nn.Sequential(
            nn.Linear(2, 32), nn.SiLU(), nn.Linear(32, 32), nn.SiLU(), nn.Linear(32, 1)
        )

    def forward(self, f):
        return self.term(f).squeeze(-1).sum(1)


net = AngleNet()
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
x_test = chains(500)
for step in range(1, 401):
    x = chains(64)
    loss = F.mse_loss(net(features(x)), energy(x))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        with torch.no_grad():
            test = F.mse_loss(net(features(x_test)), energy(x_test))
        print(f"{step:4d}  loss {loss.item():.4f}  test {test.item():.4f}")
