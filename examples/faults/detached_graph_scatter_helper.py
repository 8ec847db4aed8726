"""Energies of small molecules by message passing: the scatter helper runs without gradients.

`scatter_mean` was written for the degrees and neighbour counts, which need no gradient, and wears
`@torch.no_grad()`. Later it was reused for the messages, and now nothing flows back through them:
the network that makes messages stays as drawn. The place is the module "message". The twin's helper
has no decorator.
"""

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "detached_graph"
ACCEPT = ()
PLACE = ("message", "message.0.weight", "message.2.weight", "loop")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


def molecules(count: int):
    """Random trees of 5 to 14 atoms, three elements; an atom's energy is the mean of its bonds."""
    r = np.random.default_rng(300 + seed)
    table = np.triu(r.normal(0, 1, (3, 3)))
    table = table + np.triu(table, 1).T
    out = []
    for _ in range(count):
        n = r.integers(5, 15)
        atoms = r.integers(0, 3, n)
        parent = np.array([r.integers(0, k) for k in range(1, n)])
        child = np.arange(1, n)
        edges = np.stack([np.r_[parent, child], np.r_[child, parent]])
        bond = table[atoms[edges[0]], atoms[edges[1]]]
        energy = (np.bincount(edges[1], bond) / np.bincount(edges[1])).sum() + 0.1 * r.normal()
        out.append((torch.tensor(atoms), torch.tensor(edges), energy))
    return out


def collate(graphs):
    atoms, edges, owner, base = [], [], [], 0
    for k, (a, e, _) in enumerate(graphs):
        atoms.append(a)
        edges.append(e + base)
        owner.append(torch.full_like(a, k))
        base += len(a)
    energy = torch.tensor([g[2] for g in graphs], dtype=torch.float32)
    return torch.cat(atoms), torch.cat(edges, 1), torch.cat(owner), energy


def _scatter_mean(values, index, size):
    total = values.new_zeros(size, values.shape[1]).index_add(0, index, values)
    count = values.new_zeros(size).index_add(0, index, torch.ones_like(index, dtype=values.dtype))
    return total / count.clamp(min=1).unsqueeze(1)


scatter_mean = _scatter_mean if healthy else torch.no_grad()(_scatter_mean)


class Energy(nn.Module):
    def __init__(self, width: int = 32, bottleneck: int = 4):
        super().__init__()
        self.atom = nn.Embedding(3, width)
        self.message = nn.Sequential(
            nn.Linear(2 * width, width), nn.SiLU(), nn.Linear(width, bottleneck)
        )
        self.readout = nn.Sequential(
            nn.Linear(width + bottleneck, width), nn.SiLU(), nn.Linear(width, 1)
        )

    def forward(self, atoms, edges, owner, graphs):
        h = self.atom(atoms)
        source, target = edges
        m = scatter_mean(self.message(torch.cat([h[source], h[target]], 1)), target, len(h))
        each = self.readout(torch.cat([h, m], 1))
        return each.new_zeros(graphs, 1).index_add(0, owner, each).squeeze(1)


data = molecules(1500)
train, val = data[:1200], collate(data[1200:])
scale = float(np.std([g[2] for g in train]))
model = Energy()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=12 * 40)

for epoch in range(12):
    model.train()
    for rows in torch.randperm(len(train)).split(30):
        atoms, edges, owner, energy = collate([train[k] for k in rows])
        loss = nn.functional.mse_loss(model(atoms, edges, owner, len(rows)), energy / scale)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    model.eval()
    with torch.no_grad():
        guess = model(*val[:3], len(val[3])) * scale
        r2 = 1 - (guess - val[3]).square().mean() / val[3].var()
    if epoch % 3 == 2:
        print(f"epoch {epoch + 1}: train {loss.item():.4f}, validation R2 {r2.item():.4f}")
