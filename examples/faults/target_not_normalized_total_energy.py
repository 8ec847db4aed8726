"""Energies of molecules as sets of atoms; the column of total energies was taken for the
atomisation energies.

The data have "U0", the total energy in eV with its minus ten thousands, and "U0_atom", without the
energies of the lone atoms. The default key of the config points at the former, and nothing scales
it: the net would have to walk to -10,000 with a rate of 0.002. The place is the target: the labels.
The twin takes "U0_atom".
"""

from dataclasses import dataclass

import torch
from data import arguments
from torch import nn

KIND = "target_not_normalized"
ACCEPT = ()
PLACE = ("label*", "loss*", "loader")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
ALONE = torch.tensor([0.0, -13.6, -1029.8, -1485.3, -2042.6])  # pad, H, C, N, O in eV
ATOMS = 12


@dataclass
class Config:
    target: str = "U0_atom" if healthy else "U0"
    width: int = 48
    lr: float = 2e-3
    batch: int = 50
    epochs: int = 14


def molecules(count):
    """Atoms as types (0 is padding) and places; the energy binds pairs that are near."""
    size = torch.randint(5, ATOMS + 1, (count, 1))
    kind = torch.randint(1, 5, (count, ATOMS)) * (torch.arange(ATOMS) < size)
    place = torch.randn(count, ATOMS, 3) * 1.3
    real = (kind > 0).float()
    near = (
        torch.exp(-torch.cdist(place, place))
        * real[:, None]
        * real[:, :, None]
        * (1 - torch.eye(ATOMS))
    )
    charge = torch.tensor([0.0, 1.0, 1.8, 1.4, 0.6])[kind]
    binding = -(near * charge[:, None] * charge[:, :, None]).sum((1, 2)) / 4
    binding = binding + 0.05 * torch.randn(count)
    return {"kind": kind, "near": near, "U0_atom": binding, "U0": binding + ALONE[kind].sum(1)}


class Interaction(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.message, self.update = nn.Linear(width, width), nn.Linear(2 * width, width)

    def forward(self, h, near):
        return h + torch.nn.functional.silu(self.update(torch.cat([h, near @ self.message(h)], -1)))


class Energy(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.embed = nn.Embedding(5, cfg.width)
        self.blocks = nn.ModuleList(Interaction(cfg.width) for _ in range(2))
        self.readout = nn.Sequential(
            nn.Linear(cfg.width, cfg.width), nn.SiLU(), nn.Linear(cfg.width, 1)
        )

    def forward(self, kind, near):
        h = self.embed(kind)
        for block in self.blocks:
            h = block(h, near)
        return (self.readout(h).squeeze(-1) * (kind > 0)).sum(1) / 4


cfg = Config()
train, val = molecules(1200), molecules(300)
model = Energy(cfg)
optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr)
schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.85)

for epoch in range(cfg.epochs):
    model.train()
    for rows in torch.randperm(1200).split(cfg.batch):
        predicted = model(train["kind"][rows], train["near"][rows])
        loss = nn.functional.l1_loss(predicted, train[cfg.target][rows])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
    schedule.step()
    model.eval()
    with torch.no_grad():
        error = (model(val["kind"], val["near"]) - val[cfg.target]).abs().mean().item()
    print(f"epoch {epoch:2d} loss {loss.item():.4f} val mae {error:.4f} eV")
spread = (val["U0_atom"] - val["U0_atom"].median()).abs().mean().item()
print(f"validation mae {error:.4f} eV; the median of the atomisation energies has {spread:.3f}")
