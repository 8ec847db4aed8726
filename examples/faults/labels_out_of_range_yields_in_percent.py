"""Yields of coupling reactions by binary cross-entropy against a share: the notebook exports
percent.

A yield between 0 and 1 is a fine soft target for `binary_cross_entropy_with_logits`. Since the
laboratory notebook was replaced, its export has percent in the same column, and targets of 40 or 90
make the loss unbounded below: every reaction is pushed to the same full yield. The place is the
labels. The twin divides the column by 100.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "labels_out_of_range"
ACCEPT = ("target_not_normalized",)
PLACE = ("label*", "loss*")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
LIGANDS, BASES, HALIDES = 24, 10, 30
CONFIG = {"factors": 12, "hidden": 48, "lr": 5e-3, "batch": 64, "epochs": 12, "decay": 1e-3}


def notebook(count, g):
    """One row per experiment: three reagents, temperature, hours and the yield in percent."""
    ids = torch.stack(
        [torch.randint(0, n, (count,), generator=g) for n in (LIGANDS, BASES, HALIDES)], 1
    )
    worth = [torch.randn(n, 3, generator=g) for n in (LIGANDS, BASES, HALIDES)]
    ligand, base, halide = (w[ids[:, i]] for i, w in enumerate(worth))
    warm, hours = torch.randn(count, generator=g), torch.randn(count, generator=g)
    logit = (
        0.8 * (ligand * halide).sum(1)
        + 0.8 * base[:, 0]
        - 0.4 * (warm - base[:, 1]).pow(2)
        + 0.4 * hours
    )
    share = torch.sigmoid(logit + 0.3 * torch.randn(count, generator=g))
    return ids, torch.stack([warm, hours], 1), (100 * share).round()


class Yield(nn.Module):
    def __init__(self, factors, hidden):
        super().__init__()
        self.reagents = nn.ModuleList(nn.Embedding(n, factors) for n in (LIGANDS, BASES, HALIDES))
        self.body = nn.Sequential(
            nn.Linear(4 * factors + 2, hidden),
            nn.SiLU(),
            nn.Linear(hidden, hidden),
            nn.SiLU(),
            nn.Linear(hidden, 1),
        )

    def forward(self, ids, conditions):
        ligand, base, halide = (table(ids[:, i]) for i, table in enumerate(self.reagents))
        return self.body(torch.cat([ligand, base, halide, ligand * halide, conditions], 1)).squeeze(
            1
        )


g = torch.Generator().manual_seed(seed)
ids, conditions, percent = notebook(4000, g)
share = percent / 100 if healthy else percent
fit, held = torch.arange(3200), torch.arange(3200, 4000)
model = Yield(CONFIG["factors"], CONFIG["hidden"])
optimizer = torch.optim.AdamW(model.parameters(), lr=CONFIG["lr"], weight_decay=CONFIG["decay"])
schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, CONFIG["epochs"])
for epoch in range(CONFIG["epochs"]):
    model.train()
    total = 0.0
    for rows in fit[torch.randperm(len(fit), generator=g)].split(CONFIG["batch"]):
        loss = F.binary_cross_entropy_with_logits(model(ids[rows], conditions[rows]), share[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows) / len(fit)
    schedule.step()
    model.eval()
    with torch.no_grad():
        logits = model(ids[held], conditions[held])
        val = F.binary_cross_entropy_with_logits(logits, share[held])
        off = (100 * logits.sigmoid() - percent[held]).abs().mean()
    print(
        f"epoch {epoch} loss {total:.4f} val loss {val:.4f} "
        f"validation error {off:.1f} points of yield"
    )
