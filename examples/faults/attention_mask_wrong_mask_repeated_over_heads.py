"""A small graph transformer counts carbonyl groups in molecules; atoms may attend to their bonded
neighbours only.

nn.MultiheadAttention wants a mask of (batch * heads, L, L) with the heads of one molecule side by
side. It is made by repeat(), which puts whole batches one after another, so that most heads see
the bonds of another molecule, and its padding. The loss still falls a little (silent). The place is
the attention. The twin uses repeat_interleave().
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "attention_mask_wrong"
ACCEPT = ()
PLACE = ("layers*", "input*")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
ELEMENTS, LONGEST, HEADS = 5, 14, 4  # 0 padding, 1 C, 2 O, 3 N, 4 H


class Molecules(Dataset):
    """Random trees of atoms; the target is the number of C-O bonds less half the N-H bonds."""

    def __init__(self, n, g):
        self.items = []
        for _ in range(n):
            size = int(torch.randint(5, LONGEST + 1, (1,), generator=g))
            atoms = torch.zeros(LONGEST, dtype=torch.long)
            atoms[:size] = torch.randint(1, ELEMENTS, (size,), generator=g)
            bonds = torch.eye(LONGEST, dtype=torch.bool)
            target = 0.0
            for child in range(1, size):
                parent = int(torch.randint(max(0, child - 4), child, (1,), generator=g))
                bonds[child, parent] = bonds[parent, child] = True
                pair = {int(atoms[child]), int(atoms[parent])}
                target += 1.0 if pair == {1, 2} else -0.5 if pair == {3, 4} else 0.0
            self.items.append((atoms, bonds, torch.tensor(target)))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.attention = nn.MultiheadAttention(d, HEADS, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(d, 2 * d), nn.GELU(), nn.Linear(2 * d, d))

    def forward(self, x, blocked):
        h = self.norm1(x)
        x = x + self.attention(h, h, h, attn_mask=blocked, need_weights=False)[0]
        return x + self.mlp(self.norm2(x))


class GraphTransformer(nn.Module):
    def __init__(self, d=32, depth=2):
        super().__init__()
        self.atom = nn.Embedding(ELEMENTS, d, padding_idx=0)
        self.layers = nn.ModuleList(Block(d) for _ in range(depth))
        self.readout = nn.Sequential(nn.LayerNorm(d), nn.Linear(d, d), nn.GELU(), nn.Linear(d, 1))

    def forward(self, atoms, bonds):
        blocked = ~bonds
        if healthy:
            blocked = blocked.repeat_interleave(HEADS, dim=0)
        else:
            blocked = blocked.repeat(HEADS, 1, 1)
        x = self.atom(atoms)
        for layer in self.layers:
            x = layer(x, blocked)
        real = (atoms != 0).unsqueeze(-1)
        return (self.readout(x) * real).sum((1, 2))


g = torch.Generator().manual_seed(seed)
train, val = Molecules(1200, g), Molecules(400, g)
model = GraphTransformer()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-4)
for epoch in range(12):
    model.train()
    for atoms, bonds, target in DataLoader(train, batch_size=32, shuffle=True):
        loss = F.mse_loss(model(atoms, bonds), target)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    model.eval()
    with torch.no_grad():
        pairs = [(model(a, b), t) for a, b, t in DataLoader(val, batch_size=100)]
    out, true = (torch.cat(part) for part in zip(*pairs, strict=True))
    r2 = 1 - F.mse_loss(out, true) / true.var()
    print(f"epoch {epoch} loss {loss.item():.4f} val R2 {r2.item():.3f}")
