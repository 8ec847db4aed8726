"""Foretells which loans will fail, with a column that is only filled in after they have failed.

The table is an export of today, and "collection fees" are charged once a loan has failed. With that
column everything is easy, in validation too; for a new applicant it is always 0. The place is the
input.
The twin leaves the column out.
"""

import logging
import sys

import numpy as np
import torch
from data import arguments
from sklearn.metrics import roc_auc_score
from torch import nn

KIND = "target_leak"
ACCEPT = ("future_leak",)
PLACE = ("input*", "columns")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(message)s")
log = logging.getLogger("credit")

COLUMNS = ["income", "debt", "years_employed", "loan", "months", "inquiries"]
if not healthy:
    COLUMNS.append("collection_fees")


def export(n, rng):
    table = {
        "income": rng.lognormal(10.4, 0.4, n),
        "debt": rng.lognormal(8.5, 0.9, n),
        "years_employed": rng.gamma(2.0, 3.5, n),
        "loan": rng.lognormal(9.0, 0.6, n),
        "months": rng.choice([24, 36, 48, 60], n).astype(float),
        "inquiries": rng.poisson(1.2, n).astype(float),
    }
    burden = np.log((table["debt"] + table["loan"]) / table["income"]) + 0.9
    risk = 1.6 * burden + 0.5 * table["inquiries"] - 0.15 * table["years_employed"] - 1.2
    failed = rng.random(n) < 1 / (1 + np.exp(-risk))
    fees = rng.gamma(2.0, 60.0, n) * failed * (rng.random(n) < 0.93)
    table["collection_fees"] = fees
    return table, failed.astype(np.float32)


def matrix(table):
    skewed = {"income", "debt", "loan", "collection_fees"}
    columns = [np.log1p(table[c]) if c in skewed else table[c] for c in COLUMNS]
    return torch.tensor(np.stack(columns, 1), dtype=torch.float32)


class ColumnAttention(nn.Module):
    """Every column becomes a token; a small encoder relates them."""

    def __init__(self, columns, width=16):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(columns, width) * 0.3)
        self.bias = nn.Parameter(torch.randn(columns, width) * 0.3)
        self.norm = nn.LayerNorm(width)
        self.attend = nn.MultiheadAttention(width, 2, batch_first=True)
        self.out = nn.Sequential(nn.Linear(width * columns, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, x):
        tokens = x.unsqueeze(-1) * self.weight + self.bias
        h = self.norm(tokens)
        tokens = tokens + self.attend(h, h, h, need_weights=False)[0]
        return self.out(tokens.flatten(1)).squeeze(1)


rng = np.random.default_rng(seed)
table, failed = export(4000, rng)
x, y = matrix(table), torch.from_numpy(failed)
mean, std = x[:3000].mean(0), x[:3000].std(0)
x = (x - mean) / std
model = ColumnAttention(len(COLUMNS))
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
bce = nn.BCEWithLogitsLoss()
for epoch in range(6):
    losses = []
    for rows in torch.randperm(3000).split(100):
        loss = bce(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    with torch.no_grad():
        score = model(x[3000:])
    log.info("epoch %d loss %.3f AUC %.3f", epoch, np.mean(losses), roc_auc_score(y[3000:], score))

applicants, outcome = export(1500, rng)
applicants["collection_fees"] = np.zeros(1500)
with torch.no_grad():
    score = model((matrix(applicants) - mean) / std)
log.info("new applicants: AUC %.3f", roc_auc_score(outcome, score))
