"""A network of atoms is trained on total energies (about -22,000) rather than on what is left after
the atoms' own energies.

The readout's bias would have to creep thousands of units at a rate of 1e-3. The loss falls all the
same, from hundreds of millions, and is nowhere near the constant mean at the end. The place is the
target and the loss.
"""

import torch
from data import arguments
from torch import nn

KIND = "target_not_normalized"
ACCEPT = ()
PLACE = ("loss*", "target*", "readout*", "")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
OWN = torch.tensor([0.0, -313.0, -3980.0, -4900.0, -5890.0])  # none, H, C, N, O
ATOMS = 8


def molecules(n):
    """Kinds and coordinates of up to eight atoms; the energy is the sum of theirs and of pair
    terms.
    """
    kind = torch.randint(1, 5, (n, ATOMS))
    count = torch.randint(4, ATOMS + 1, (n, 1))
    kind = torch.where(torch.arange(ATOMS) < count, kind, 0)
    place = 1.6 * torch.randn(n, ATOMS, 3)
    distance = torch.cdist(place, place) + 10 * torch.eye(ATOMS)
    there = (kind > 0).float()
    pair = there[:, :, None] * there[:, None, :]
    strength = 1 + 0.3 * (kind[:, :, None] + kind[:, None, :])
    energy = OWN[kind].sum(1) - 40 * (pair * strength * torch.exp(-distance / 1.5)).sum((1, 2)) / 2
    return kind, distance, energy


class SchNetLike(nn.Module):
    def __init__(self, width=32, rounds=2):
        super().__init__()
        self.atom = nn.Embedding(5, width, padding_idx=0)
        self.centres = torch.linspace(0.5, 6, 12)
        self.filters = nn.ModuleList(
            nn.Sequential(nn.Linear(12, width), nn.Softplus()) for _ in range(rounds)
        )
        self.updates = nn.ModuleList(
            nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width))
            for _ in range(rounds)
        )
        self.readout = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1))

    def forward(self, kind, distance):
        there = (kind > 0).float()
        mask = (there[:, :, None] * there[:, None, :]).unsqueeze(-1)
        basis = torch.exp(-2 * (distance.unsqueeze(-1) - self.centres) ** 2)
        h = self.atom(kind)
        for filt, update in zip(self.filters, self.updates, strict=False):
            message = (filt(basis) * h[:, None] * mask).sum(2)
            h = h + update(message)
        return (self.readout(h).squeeze(-1) * there).sum(1)


kind, distance, energy = molecules(1600)
train = slice(0, 1300)
test = slice(1300, None)
target, shift, scale = energy, torch.zeros(len(energy)), 1.0
if healthy:
    shift = OWN[kind].sum(1)
    bound = energy - shift
    shift = shift + bound[train].mean()
    scale = bound[train].std()
    target = (energy - shift) / scale

model = SchNetLike()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(14):
    model.train()
    for rows in torch.randperm(1300).split(50):
        loss = nn.functional.mse_loss(model(kind[rows], distance[rows]), target[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        guess = model(kind[test], distance[test]) * scale + shift[test]
    mae = (guess - energy[test]).abs().mean()
    print(
        f"epoch {epoch:2d} loss {loss.item():.4g} test MAE {mae:.1f} (mean: "
        f"{(energy[test] - energy[train].mean()).abs().mean():.1f})"
    )
