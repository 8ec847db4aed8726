"""A message-passing net predicts eight toxicity assays of small molecules; assays that were not
measured carry the label -1 and enter the loss.

In the table -1 stands for "not tested", as in MoleculeNet dumps; the user averages BCE over all
cells instead of the measured ones, so that the missing ones pull the logits to minus infinity.
The place is the loss (its targets) / the loader.
"""

import math

import torch
from data import arguments
from torch import nn
from torch.nn import functional as F

KIND = "labels_out_of_range"
ACCEPT = ("output_activation_range",)
PLACE = ("loss", "loader", "input*")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

ATOMS, MAX_ATOMS, ASSAYS = 6, 14, 8


def molecules(n, g):
    """Random trees with a ring or two: one-hot atoms, adjacency, mask; activity by fragments (bonded pairs)."""  # noqa: E501
    kind = torch.multinomial(
        torch.tensor([0.5, 0.15, 0.15, 0.08, 0.07, 0.05]), n * MAX_ATOMS, True, generator=g
    ).view(n, -1)
    size = torch.randint(6, MAX_ATOMS + 1, (n,), generator=g)
    mask = torch.arange(MAX_ATOMS)[None] < size[:, None]
    adj = torch.zeros(n, MAX_ATOMS, MAX_ATOMS)
    for i in range(1, MAX_ATOMS):
        parent = (torch.rand(n, generator=g) * min(i, 3)).long() + max(0, i - 3)
        adj[torch.arange(n), i, parent] = 1
    close = torch.rand(n, generator=g) < 0.6
    adj[torch.arange(n), 5, 0] = torch.maximum(adj[torch.arange(n), 5, 0], close.float())
    adj = (adj + adj.transpose(1, 2)) * mask[:, None] * mask[:, :, None]
    atoms = F.one_hot(kind, ATOMS).float() * mask[..., None]
    pairs = torch.einsum("nia,nij,njb->nab", atoms, adj, atoms).flatten(1)
    pairs = (pairs - pairs.mean(0)) / (pairs.std(0) + 0.1)
    w = torch.randn(ATOMS * ATOMS, ASSAYS, generator=g) * (
        torch.rand(ATOMS * ATOMS, ASSAYS, generator=g) < 0.4
    )
    y = (torch.rand(n, ASSAYS, generator=g) < torch.sigmoid(0.8 * pairs @ w - 0.8)).float()
    tested = torch.rand(n, ASSAYS, generator=g) < torch.linspace(0.5, 0.9, ASSAYS)
    return atoms, adj, mask.float(), torch.where(tested, y, torch.tensor(-1.0))


class MPNN(nn.Module):
    def __init__(self, d=48, rounds=3):
        super().__init__()
        self.embed = nn.Linear(ATOMS, d)
        self.message = nn.ModuleList(nn.Linear(2 * d, d) for _ in range(rounds))
        self.norm = nn.ModuleList(nn.LayerNorm(d) for _ in range(rounds))
        self.readout = nn.Sequential(
            nn.Linear(2 * d, d), nn.ReLU(), nn.Dropout(0.1), nn.Linear(d, ASSAYS)
        )

    def forward(self, atoms, adj, mask):
        h = self.embed(atoms)
        for message, norm in zip(self.message, self.norm, strict=False):
            h = norm(h + F.relu(message(torch.cat([h, adj @ h], -1))))
        h = h * mask[..., None]
        pooled = torch.cat([h.sum(1) / mask.sum(1, keepdim=True), h.sum(1) / MAX_ATOMS], 1)
        return self.readout(pooled)


def measured_auc(logits, y):
    aucs = []
    for t in range(ASSAYS):
        pos, neg = logits[y[:, t] == 1, t], logits[y[:, t] == 0, t]
        aucs.append((pos[:, None] > neg[None]).float().mean().item())
    return sum(aucs) / len(aucs)


g = torch.Generator().manual_seed(60 + seed)
data = molecules(4500, g)
train, val = [t[:3700] for t in data], [t[3700:] for t in data]
model = MPNN()
opt = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.02)
epochs, size = 16, 100
total = epochs * (3700 // size)
sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: 0.5 + 0.5 * math.cos(math.pi * s / total))
for epoch in range(epochs):
    model.train()
    seen = []
    for rows in torch.randperm(3700).split(size):
        atoms, adj, mask, y = (t[rows] for t in train)
        cell = F.binary_cross_entropy_with_logits(model(atoms, adj, mask), y, reduction="none")
        weight = (y >= 0).float() if healthy else torch.ones_like(y)
        loss = (cell * weight).sum() / weight.sum()
        opt.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 2.0)
        opt.step()
        sched.step()
        seen.append(loss.item())
    if epoch % 3 == 0 or epoch == epochs - 1:
        model.eval()
        with torch.no_grad():
            logits, y = model(*val[:3]), val[3]
            ok = y >= 0
            val_loss = F.binary_cross_entropy_with_logits(logits[ok], y[ok]).item()
        print(
            f"{epoch:2d} train {sum(seen) / len(seen):.4f} val (measured) {val_loss:.4f} auc {measured_auc(logits, y):.4f}"  # noqa: E501
        )
