"""A property of molecules as sets of atoms; the pooling over ragged sets goes through NumPy.

`np.add.reduceat` sums the atoms of each molecule in one call, and where PyTorch said "Can't call
numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead", the author did. The
atom encoder gets no gradient and stays random. The place is the encoder. The twin sums with
index_add.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "detached_graph"
ACCEPT = ()
PLACE = (
    "embed",
    "embed.weight",
    "encoder",
    "encoder.0.weight",
    "encoder.0.bias",
    "encoder.2.weight",
    "encoder.2.bias",
    "encoder.0",
    "encoder.2",
)
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


class Molecules(Dataset):
    """Atoms (element, distance to the centre, charge) and a solubility that is a sum over atoms."""

    def __init__(self, n, rng):
        element_effect = np.array([0.9, -0.7, 0.4, -1.1, 0.1])
        self.items = []
        for _ in range(n):
            k = rng.integers(4, 18)
            element = rng.choice(5, k, p=[0.4, 0.25, 0.15, 0.1, 0.1])
            radius = rng.gamma(2.0, 0.6, k)
            charge = rng.normal(0, 1, k)
            part = element_effect[element] * np.exp(-((radius - 1.2) ** 2) * 2) + 0.4 * np.sin(
                1.5 * charge
            )
            y = part.sum() + rng.normal(0, 0.1)
            self.items.append(
                (torch.tensor(element), torch.tensor(np.stack([radius, charge], 1)).float(), y)
            )

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def collate(items):
    sizes = torch.tensor([len(e) for e, _, _ in items])
    y = torch.tensor([y for _, _, y in items], dtype=torch.float32)
    return torch.cat([e for e, _, _ in items]), torch.cat([g for _, g, _ in items]), sizes, y


def sum_pool(atoms, sizes):
    if healthy:
        owner = torch.repeat_interleave(torch.arange(len(sizes)), sizes)
        return torch.zeros(len(sizes), atoms.shape[1]).index_add(0, owner, atoms)
    starts = np.concatenate([[0], np.cumsum(sizes.numpy())[:-1]])
    return torch.from_numpy(np.add.reduceat(atoms.detach().numpy(), starts, axis=0))


class DeepSet(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.embed = nn.Embedding(5, 8)
        self.encoder = nn.Sequential(nn.Linear(10, 48), nn.SiLU(), nn.Linear(48, width), nn.SiLU())
        self.readout = nn.Sequential(nn.Linear(width, 32), nn.SiLU(), nn.Linear(32, 1))

    def forward(self, element, geometry, sizes):
        atoms = self.encoder(torch.cat([self.embed(element), geometry], 1))
        return self.readout(sum_pool(atoms, sizes) / 10).squeeze(1)


rng = np.random.default_rng(seed)
train, val = Molecules(1500, rng), Molecules(400, rng)
loader = DataLoader(train, 32, shuffle=True, collate_fn=collate)
val_batch = collate(val.items)
model = DeepSet()
optimizer = torch.optim.Adam(model.parameters(), lr=6e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 20)
for epoch in range(20):
    model.train()
    for element, geometry, sizes, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(element, geometry, sizes), y)
        loss.backward()
        optimizer.step()
    scheduler.step()
    model.eval()
    with torch.no_grad():
        error = nn.functional.mse_loss(model(*val_batch[:3]), val_batch[3]).item()
    print(
        f"epoch {epoch:2d} loss {loss.item():.4f} val {error:.4f} "
        f"R2 {1 - error / val_batch[3].var().item():.3f}"
    )
