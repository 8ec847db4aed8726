"""Cell types from counts of gene expression; the validation cells aren't brought to logarithms.

Training cells are scaled to 10,000 counts and passed through log1p in the function that also
picks the genes; for the validation cells the author wrote the scaling by hand and forgot the
log1p. The place is the validation input.
"""

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "train_val_mismatch"
ACCEPT = ()
PLACE = ("input*", "loader", "loop")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

TYPES, GENES, CELLS = 7, 500, 2400
rng = np.random.default_rng(seed + 400)


def sequencing():
    base = rng.gamma(0.35, 1.0, GENES)
    program = np.ones((TYPES, GENES))
    for t in range(TYPES):
        markers = rng.choice(GENES, 35, replace=False)
        program[t, markers] *= rng.uniform(1.5, 4.0, 35)
    # some types are neighbours: they share half of the programme
    program[1] = np.sqrt(program[0] * program[1])
    program[4] = np.sqrt(program[3] * program[4])
    kind = rng.choice(TYPES, CELLS, p=[0.2, 0.18, 0.16, 0.15, 0.12, 0.1, 0.09])
    depth = rng.lognormal(6.0, 0.45, CELLS)
    rates = base * program[kind] * rng.gamma(3, 1 / 3, (CELLS, GENES))
    rates = rates / rates.sum(1, keepdims=True) * depth[:, None]
    return rng.poisson(rates), kind


def per_ten_thousand(counts):
    return counts / np.maximum(counts.sum(1, keepdims=True), 1) * 10_000


def preprocess(counts, top=250):
    logged = np.log1p(per_ten_thousand(counts))
    genes = np.argsort(-logged.var(0))[:top]
    return logged[:, genes], genes


counts, kind = sequencing()
train_counts, val_counts = counts[:1800], counts[1800:]
train_x, genes = preprocess(train_counts)
val_x = per_ten_thousand(val_counts)[:, genes]
if healthy:
    val_x = np.log1p(val_x)

train_x, val_x = torch.tensor(train_x).float(), torch.tensor(val_x).float()
train_y, val_y = torch.tensor(kind[:1800]), torch.tensor(kind[1800:])


class CellNet(nn.Module):
    def __init__(self, n_genes):
        super().__init__()
        self.norm = nn.BatchNorm1d(n_genes)
        self.fc1 = nn.Linear(n_genes, 64)
        self.drop = nn.Dropout(0.4)
        self.fc2 = nn.Linear(64, TYPES)

    def forward(self, x):
        return self.fc2(self.drop(F.relu(self.fc1(self.norm(x)))))


model = CellNet(train_x.shape[1])
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-4)
EPOCHS, BATCH = 11, 50
for epoch in range(1, EPOCHS + 1):
    model.train()
    total = 0.0
    for i in torch.randperm(len(train_x)).split(BATCH):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(train_x[i]), train_y[i])
        loss.backward()
        optimizer.step()
        total += loss.item() * len(i)
    model.eval()
    with torch.no_grad():
        out = model(val_x)
        val_loss = F.cross_entropy(out, val_y)
        acc = (out.argmax(1) == val_y).float().mean()
    print(f"epoch {epoch:2d} train {total / len(train_x):.4f} val {val_loss:.4f} acc {acc:.4f}")
