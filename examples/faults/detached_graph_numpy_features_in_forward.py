"""Solubility of molecules from sets of atoms: the pooling goes through numpy.

The sum over the atoms of each molecule was first written in numpy (`np.add.at`) in a notebook and
moved into `forward` as it was; the error "Can't call numpy() on Tensor that requires grad" was
answered with `.detach()`, as the message says. The head learns on random atom features; the atom
encoder never gets a gradient. The place is the encoder. The twin pools with `index_add_`.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "detached_graph"
ACCEPT = ()
PLACE = (
    "encoder",
    "encoder.0",
    "encoder.0.weight",
    "encoder.0.bias",
    "encoder.2",
    "encoder.2.weight",
    "encoder.2.bias",
)
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
rng = np.random.default_rng(seed)


class Molecules(Dataset):
    def __init__(self, n):
        self.items = []
        for _ in range(n):
            size = rng.integers(4, 14)
            atoms = rng.normal(0, 1, (size, 6)).astype(np.float32)
            polar = np.maximum(0, atoms[:, 0] * atoms[:, 1] + np.sin(2 * atoms[:, 2]))
            bulky = np.abs(atoms[:, 3]) > 1.0
            target = 0.5 * polar.sum() - 0.6 * bulky.sum() + rng.normal(0, 0.1)
            self.items.append((torch.from_numpy(atoms), float(target)))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def collate(items):
    atoms = torch.cat([a for a, _ in items])
    owner = torch.repeat_interleave(
        torch.arange(len(items)), torch.tensor([len(a) for a, _ in items])
    )
    return atoms, owner, torch.tensor([t for _, t in items])


class SetNet(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(6, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU()
        )
        self.head = nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 1))

    def forward(self, atoms, owner, molecules):
        h = self.encoder(atoms)
        if healthy:
            pooled = h.new_zeros(molecules, h.shape[1]).index_add_(0, owner, h)
        else:
            pooled = np.zeros((molecules, h.shape[1]), dtype=np.float32)
            np.add.at(pooled, owner.numpy(), h.detach().numpy())
            pooled = torch.from_numpy(pooled)
        return self.head(pooled).squeeze(1)


train = DataLoader(Molecules(1200), batch_size=60, shuffle=True, collate_fn=collate)
val = DataLoader(Molecules(300), batch_size=300, collate_fn=collate)
model = SetNet()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for epoch in range(25):
    model.train()
    losses = []
    for atoms, owner, target in train:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(atoms, owner, len(target)), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        for atoms, owner, target in val:
            error = nn.functional.mse_loss(model(atoms, owner, len(target)), target)
    r2 = 1 - error.item() / target.var().item()
    print(f"epoch {epoch:2d}  train mse {np.mean(losses):.3f}  val mse {error:.3f}  R2 {r2:.3f}")
