"""A factorisation machine on a machine that is taken away every 120 steps; only the model is saved.

Each return makes a new Adagrad, whose sums of squares start at zero: the first steps after it are
as large as at the very start, the loss doubles each time, and each session only makes good that
harm. The place is the optimizer.
"""

import os
import tempfile

import torch
from data import arguments, batches
from torch import nn

KIND = "resume_lost_optimizer_state"
ACCEPT = ()
PLACE = ("optimizer", "loop")
SILENT = True
EXACT = True
EARLY = False

healthy, seed = arguments(__doc__)
FIELDS, LEVELS, ROWS = 6, 12, 8000


class FactorisationMachine(nn.Module):
    def __init__(self, k=8):
        super().__init__()
        self.weight = nn.Embedding(FIELDS * LEVELS, 1)
        self.factors = nn.Embedding(FIELDS * LEVELS, k)
        self.bias = nn.Parameter(torch.zeros(1))
        nn.init.zeros_(self.weight.weight)
        nn.init.normal_(self.factors.weight, std=0.05)

    def forward(self, ids):
        v = self.factors(ids)
        pairs = (v.sum(1).square() - v.square().sum(1)).sum(1) / 2
        return self.bias + self.weight(ids).sum((1, 2)) + pairs


def clicks():
    ids = torch.randint(LEVELS, (ROWS, FIELDS)) + LEVELS * torch.arange(FIELDS)
    weight, factor = torch.randn(FIELDS * LEVELS), 0.6 * torch.randn(FIELDS * LEVELS, 3)
    v = factor[ids]
    logit = 0.7 * weight[ids].sum(1) + (v.sum(1).square() - v.square().sum(1)).sum(1) / 2
    return ids, torch.bernoulli(torch.sigmoid(1.5 * logit))


ids, clicked = clicks()
criterion = nn.BCEWithLogitsLoss()
path = os.path.join(tempfile.mkdtemp(), "checkpoint.pt")
stream = batches(ids[:6500], clicked[:6500], size=100, steps=600, seed=seed)
for session in range(5):
    model = FactorisationMachine()
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.2)
    if os.path.exists(path):
        saved = torch.load(path)
        model.load_state_dict(saved["model"])
        if healthy:
            optimizer.load_state_dict(saved["optimizer"])
    for step in range(120):
        row, label = next(stream)
        loss = criterion(model(row), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, path)
    with torch.no_grad():
        val_loss = criterion(model(ids[6500:]), clicked[6500:]).item()
print(f"loss {loss.item():.3f}, validation loss {val_loss:.3f}")
