"""A graph network learns from normalised adjacencies of molecules and is validated on raw ones.

The training graphs get self loops and are divided by the degrees in the function that makes their
batches; the validation graphs go in as plain zeros and ones, so sums are about twice as large and
an atom does not see itself. The place is the input of the validation.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "train_val_mismatch"
ACCEPT = ()
PLACE = ("input", "loader", "loop")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

ATOMS, KINDS = 12, 5


def molecules(n, g):
    """Random trees with a ring now and then; solubility by atoms, neighbours and branching."""
    fixed = torch.Generator().manual_seed(8)
    own = torch.randn(KINDS, generator=fixed)
    pair = torch.randn(KINDS, KINDS, generator=fixed)
    kind = torch.randint(0, KINDS, (n, ATOMS), generator=g)
    bonds = torch.zeros(n, ATOMS, ATOMS)
    each = torch.arange(n)
    for atom in range(1, ATOMS):
        to = (torch.rand(n, generator=g) * min(atom, 3)).long() + max(0, atom - 3)
        bonds[each, atom, to] = bonds[each, to, atom] = 1
    ring = torch.rand(n, generator=g) < 0.5
    bonds[ring, 0, 5] = bonds[ring, 5, 0] = 1
    around = (bonds * (pair + pair.T)[kind[:, :, None], kind[:, None, :]]).sum((1, 2)) / 2
    y = own[kind].sum(1) + 0.5 * around + 0.5 * torch.randn(n, generator=g)
    return {"kind": kind, "bonds": bonds, "y": y}


def normalised(bonds):
    linked = bonds + torch.eye(ATOMS)
    root = linked.sum(2).rsqrt()
    return root[:, :, None] * linked * root[:, None, :]


class GraphLayer(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)

    def forward(self, x, adjacency):
        return F.relu(self.linear(adjacency @ x))


class MoleculeNet(nn.Module):
    def __init__(self, width=40):
        super().__init__()
        self.atoms = nn.Embedding(KINDS, width)
        self.layers = nn.ModuleList(GraphLayer(width, width) for _ in range(3))
        self.readout = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, kind, adjacency):
        x = self.atoms(kind)
        for layer in self.layers:
            x = x + layer(x, adjacency)
        return self.readout(x.mean(1)).squeeze(1)


def training_batches(data, size, g):
    for rows in torch.randperm(len(data["y"]), generator=g).split(size):
        yield data["kind"][rows], normalised(data["bonds"][rows]), data["y"][rows]


def validation_batches(data, size):
    for rows in torch.arange(len(data["y"])).split(size):
        bonds = data["bonds"][rows]
        yield data["kind"][rows], normalised(bonds) if healthy else bonds, data["y"][rows]


g = torch.Generator().manual_seed(seed)
train, val = molecules(1500, g), molecules(400, g)
mean, std = train["y"].mean(), train["y"].std()
for part in (train, val):
    part["y"] = (part["y"] - mean) / std
model = MoleculeNet()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, weight_decay=1e-4)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 6, 0.4)
for epoch in range(14):
    total, held_out = 0.0, 0.0
    model.train()
    for kind, adjacency, y in training_batches(train, 50, g):
        loss = F.mse_loss(model(kind, adjacency), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(y) / 1500
    scheduler.step()
    model.eval()
    with torch.no_grad():
        for kind, adjacency, y in validation_batches(val, 100):
            held_out += F.mse_loss(model(kind, adjacency), y).item() * len(y) / 400
    if epoch % 2:
        print(f"epoch {epoch + 1:2d}  train mse {total:.4f}  val mse {held_out:.4f}")
