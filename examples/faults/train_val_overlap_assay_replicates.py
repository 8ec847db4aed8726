"""Potency of molecules from fingerprints; the group split is keyed on the record, not the compound.

Assay exports hold every compound three or four times, once per replicate. GroupShuffleSplit was
given the unique `record_id` as its groups, so it groups nothing: replicates of one compound lie on
both sides and the validation error measures memory. The place is the split in `split_assay`, the
data. The twin groups by `compound_id`; both end with a plate of compounds that nobody has seen,
which tells the truth.
"""

import copy
from dataclasses import dataclass

import numpy as np
import torch
from data import arguments
from sklearn.model_selection import GroupShuffleSplit
from torch import nn

KIND = "train_val_overlap"
ACCEPT = ("overfit",)
PLACE = ("loader",)
SILENT = True
EXACT = True
EARLY = False

healthy, seed = arguments(__doc__)


@dataclass
class Config:
    group_key: str = "compound_id" if healthy else "record_id"
    bits: int = 96
    width: int = 96
    lr: float = 1e-3
    epochs: int = 25
    patience: int = 4


def make_assay(compounds, seed, cfg):
    rng = np.random.default_rng(7)  # the chemistry is the same for every seed
    linear = rng.normal(0, 0.35, cfg.bits)
    pairs = rng.integers(0, cfg.bits, (30, 2))
    rng = np.random.default_rng(seed)
    prints = (rng.random((compounds, cfg.bits)) < 0.25).astype("float32")
    cliff = rng.normal(0, 0.6, compounds)  # what fingerprints of this kind cannot explain
    potency = (
        prints @ linear + 0.6 * (prints[:, pairs[:, 0]] * prints[:, pairs[:, 1]]).sum(1) + cliff
    )
    compound = np.repeat(np.arange(compounds), rng.integers(3, 5, compounds))
    measured = potency[compound] + rng.normal(0, 0.2, len(compound))
    return {
        "x": torch.tensor(prints[compound]),
        "y": torch.tensor(measured, dtype=torch.float32),
        "compound_id": compound,
        "record_id": np.arange(len(compound)),
    }


def split_assay(assay, key, seed):
    splitter = GroupShuffleSplit(1, test_size=0.25, random_state=seed)
    return next(splitter.split(assay["x"], assay["y"], groups=assay[key]))


cfg = Config()
assay, plate = make_assay(900, seed, cfg), make_assay(400, seed + 500, cfg)
train, val = (torch.as_tensor(part) for part in split_assay(assay, cfg.group_key, seed))
shift, scale = assay["y"][train].mean(), assay["y"][train].std()
model = nn.Sequential(
    nn.Linear(cfg.bits, cfg.width),
    nn.GELU(),
    nn.Dropout(0.3),
    nn.Linear(cfg.width, cfg.width),
    nn.GELU(),
    nn.Linear(cfg.width, 1),
    nn.Flatten(0),
)
optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr, weight_decay=0.1)


def r2(x, y):
    model.eval()
    with torch.no_grad():
        error = (model(x) * scale + shift - y).square().mean()
    return 1 - (error / y.var()).item()


best, kept, since = -9.0, None, 0
for epoch in range(cfg.epochs):
    model.train()
    for rows in train[torch.randperm(len(train))].split(64):
        loss = nn.functional.mse_loss(model(assay["x"][rows]), (assay["y"][rows] - shift) / scale)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    score = r2(assay["x"][val], assay["y"][val])
    print(f"epoch {epoch:2d} loss {loss.item():.3f} validation R2 {score:.3f}")
    if score > best:
        best, kept, since = score, copy.deepcopy(model.state_dict()), 0
    else:
        since += 1
    if since == cfg.patience:
        break
model.load_state_dict(kept)
print(f"validation R2 {best:.3f}, new compounds R2 {r2(plate['x'], plate['y']):.3f}")
