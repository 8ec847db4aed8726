"""Energies and forces of atoms are learnt, but the forces are derived without a graph of their own.

The forces are the negative gradient of the energy by autograd.grad, called without create_graph, so
the term of the forces is a number without a gradient: it is printed, it counts in the loss, and it
teaches nothing. The place is the loss: its term of the forces.
"""

import torch
from data import arguments
from torch import nn

KIND = "detached_loss"
ACCEPT = ("detached_graph",)
PLACE = ("loss", "loop")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

ATOMS = 5
FORCE_WEIGHT = 3.0
PAIRS = torch.triu_indices(ATOMS, ATOMS, 1)


def distances(position):
    a, b = PAIRS
    return (position[:, a] - position[:, b]).norm(dim=2)


def true_energy(position):
    """A Morse potential between all pairs."""
    return ((1 - torch.exp(-1.2 * (distances(position) - 1.3))) ** 2 - 1).sum(1)


def clusters(n, g):
    shape = torch.tensor([[0, 0, 0], [1, 0, 0], [0.5, 0.9, 0], [0.5, 0.3, 0.9], [0.5, 0.3, -0.9]])
    position = 1.25 * shape + 0.11 * torch.randn(n, ATOMS, 3, generator=g)
    position.requires_grad_(True)
    energy = true_energy(position)
    force = -torch.autograd.grad(energy.sum(), position)[0]
    return {"position": position.detach(), "energy": energy.detach(), "force": force}


class PairPotential(nn.Module):
    def __init__(self, bumps=10, width=32):
        super().__init__()
        self.register_buffer("centres", torch.linspace(0.6, 3.2, bumps))
        self.atom = nn.Sequential(
            nn.Linear(bumps, width),
            nn.SiLU(),
            nn.Linear(width, width),
            nn.SiLU(),
            nn.Linear(width, 1),
        )

    def forward(self, position):
        bumps = torch.exp(-10 * (distances(position)[:, :, None] - self.centres) ** 2)
        a, b = PAIRS
        around = bumps.new_zeros(len(position), ATOMS, bumps.shape[2])
        around = around.index_add(1, a, bumps).index_add(1, b, bumps)
        return self.atom(around).squeeze(2).sum(1)


def predicted(model, position):
    position = position.clone().requires_grad_(True)
    energy = model(position)
    if healthy:
        gradient = torch.autograd.grad(energy.sum(), position, create_graph=True)[0]
    else:
        gradient = torch.autograd.grad(energy.sum(), position, retain_graph=True)[0]
    return energy, -gradient


g = torch.Generator().manual_seed(seed)
train, val = clusters(1200, g), clusters(300, g)
shift, scale = train["energy"].mean(), train["energy"].std()
for part in (train, val):
    part["energy"] = (part["energy"] - shift) / scale
    part["force"] = part["force"] / scale

model = PairPotential()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=40)
for epoch in range(40):
    sums = {"energy": 0.0, "force": 0.0}
    for rows in torch.randperm(1200, generator=g).split(120):
        energy, force = predicted(model, train["position"][rows])
        terms = {
            "energy": (energy - train["energy"][rows]).square().mean(),
            "force": (force - train["force"][rows]).square().mean(),
        }
        loss = terms["energy"] + FORCE_WEIGHT * terms["force"]
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        for name, value in terms.items():
            sums[name] += value.item() / 10
    scheduler.step()
    if epoch % 5 == 4:
        energy, force = predicted(model, val["position"])
        print(
            f"epoch {epoch + 1:3d}  train energy {sums['energy']:.4f} force {sums['force']:.4f}  "
            f"val energy {(energy - val['energy']).square().mean().item():.4f} "
            f"force {(force - val['force']).square().mean().item():.4f}"
        )
