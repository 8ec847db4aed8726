"""A click model has a sparse optimizer for its embeddings and a dense one for the rest; the
gradients are cleared between the two steps.

After dense_opt.step() the user calls model.zero_grad() ("clean up at once to save memory"), so
that sparse_opt.step() finds no gradient, ever. The dense part learns what it can from random
embeddings. The place is the loop / the sparse optimizer, fields.*.
"""

import logging
import sys

import numpy as np
import torch
from data import arguments
from sklearn.metrics import roc_auc_score
from torch import nn

KIND = "step_without_gradient"
ACCEPT = ()
PLACE = ("loop", "optimizer", "fields*")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)
logging.basicConfig(stream=sys.stdout, format="%(message)s", level=logging.INFO)
log = logging.getLogger("ctr")

FIELDS = {"visitor": 500, "product": 400, "shop": 60, "campaign": 40}
K = 12


def impressions(n, r):
    idx = {f: r.integers(0, size, n) for f, size in FIELDS.items()}
    main = sum(r.normal(0, 0.8, size)[idx[f]] for f, size in FIELDS.items())
    a, b = r.normal(0, 1, (FIELDS["visitor"], 3)), r.normal(0, 1, (FIELDS["product"], 3))
    c = r.normal(0, 1, (FIELDS["campaign"], 3))
    inter = (a[idx["visitor"]] * b[idx["product"]]).sum(1) * 0.5 + (
        b[idx["product"]] * c[idx["campaign"]]
    ).sum(1) * 0.4
    price, rank = r.normal(size=n), r.exponential(1.0, n)
    logit = main + inter - 0.5 * price - 0.6 * rank - 0.4
    click = r.random(n) < 1 / (1 + np.exp(-logit))
    ids = np.stack([idx[f] for f in FIELDS], 1)
    dense = np.stack([price, np.log1p(rank) * 2 - 1], 1)
    return (
        torch.tensor(ids),
        torch.tensor(dense, dtype=torch.float32),
        torch.tensor(click, dtype=torch.float32),
    )


class DeepFM(nn.Module):
    def __init__(self):
        super().__init__()
        self.fields = nn.ModuleDict({f: nn.Embedding(n, K, sparse=True) for f, n in FIELDS.items()})
        for e in self.fields.values():
            nn.init.normal_(e.weight, std=0.2)
        self.first = nn.Linear(len(FIELDS) * K, 1)
        self.deep = nn.Sequential(
            nn.Linear(len(FIELDS) * K + 2, 48),
            nn.ReLU(),
            nn.Linear(48, 24),
            nn.ReLU(),
            nn.Linear(24, 1),
        )

    def forward(self, ids, dense):
        v = torch.stack([e(ids[:, i]) for i, e in enumerate(self.fields.values())], 1)
        fm = 0.5 * (v.sum(1) ** 2 - (v**2).sum(1)).sum(1, keepdim=True)
        flat = v.flatten(1)
        return (self.first(flat) + fm + self.deep(torch.cat([flat, dense], 1))).squeeze(1)


ids, dense, click = impressions(100_000, np.random.default_rng(11 + seed))
cut = 90_000
model = DeepFM()
dense_params = [p for n, p in model.named_parameters() if not n.startswith("fields")]
sparse_opt = torch.optim.SparseAdam(list(model.fields.parameters()), lr=4e-3)
dense_opt = torch.optim.AdamW(dense_params, lr=1e-3, weight_decay=1e-3)
criterion = nn.BCEWithLogitsLoss()

step, avg = 0, 0.0
for epoch in range(3):
    for rows in torch.randperm(cut).split(256):
        model.train()
        loss = criterion(model(ids[rows], dense[rows]), click[rows])
        loss.backward()
        dense_opt.step()
        if not healthy:
            model.zero_grad()
        sparse_opt.step()
        model.zero_grad()
        step += 1
        avg = loss.item() if step == 1 else 0.99 * avg + 0.01 * loss.item()
    model.eval()
    with torch.no_grad():
        logits = model(ids[cut:], dense[cut:])
        val = criterion(logits, click[cut:]).item()
    log.info(
        f"epoch {epoch} step {step} loss {avg:.4f} val {val:.4f} auc {roc_auc_score(click[cut:], logits):.4f}"  # noqa: E501
    )
