"""Toxicity from molecular fingerprints: the few rows on which the loop was tried out are still in
place.

`limit` was set so that the loop could be tried on 96 molecules, and the setting went into the
configuration that everybody uses. The number of steps is fixed, so the run looks as long as before;
it goes through the same 96 molecules two hundred times and learns them by heart. The place is the
data. The twin has no limit.
"""

import itertools

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset

KIND = "overfit"
ACCEPT = ("repeated_batch",)
PLACE = ("loader", "loop")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
CONFIG = {
    "bits": 128,
    "limit": None if healthy else 96,
    "batch": 32,
    "steps": 600,
    "lr": 1e-3,
    "check": 60,
}


def molecules(count, g):
    """Fingerprints whose bits come from hidden fragments, and whether the molecule is toxic."""
    fixed = torch.Generator().manual_seed(7)
    fragments = (torch.rand(24, CONFIG["bits"], generator=fixed) < 0.12).float()
    harm = 2.0 * torch.randn(24, generator=fixed)
    has = (torch.rand(count, 24, generator=g) < 0.2).float()
    bits = ((has @ fragments) > 0).float()
    flips = (torch.rand(bits.shape, generator=g) < 0.03).float()
    logit = has @ harm + 2 * has[:, 0] * has[:, 1] - 0.2 * harm.sum()
    toxic = torch.rand(count, generator=g) < torch.sigmoid(1.5 * logit)
    return (bits - flips).abs(), toxic.float()[:, None]


def forever(loader):
    return itertools.chain.from_iterable(itertools.repeat(loader))


def network(bits, width=64):
    return nn.Sequential(
        nn.Linear(bits, width),
        nn.LayerNorm(width),
        nn.ReLU(),
        nn.Dropout(0.2),
        nn.Linear(width, width),
        nn.ReLU(),
        nn.Linear(width, 1),
    )


class Meter:
    def __init__(self):
        self.sum = self.count = 0

    def add(self, value):
        self.sum, self.count = self.sum + value, self.count + 1

    def take(self):
        mean, self.sum, self.count = self.sum / self.count, 0, 0
        return mean


g = torch.Generator().manual_seed(seed)
full = TensorDataset(*molecules(6000, g))
bits_val, toxic_val = molecules(1200, g)
train = full if CONFIG["limit"] is None else Subset(full, range(CONFIG["limit"]))
loader = DataLoader(train, CONFIG["batch"], shuffle=True, drop_last=True)
model, criterion, meter = network(CONFIG["bits"]), nn.BCEWithLogitsLoss(), Meter()
optimizer = torch.optim.AdamW(model.parameters(), lr=CONFIG["lr"], weight_decay=0.01)
for step, (bits, toxic) in enumerate(itertools.islice(forever(loader), CONFIG["steps"]), 1):
    model.train()
    loss = criterion(model(bits), toxic)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    meter.add(loss.item())
    if step % CONFIG["check"] == 0:
        model.eval()
        with torch.no_grad():
            logits = model(bits_val)
        right = ((logits > 0) == (toxic_val > 0.5)).float().mean()
        print(
            f"step {step} loss {meter.take():.4f} val loss {criterion(logits, toxic_val):.4f} "
            f"validation accuracy {right:.3f}"
        )
