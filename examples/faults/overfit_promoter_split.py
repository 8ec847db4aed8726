"""A motif detector on DNA strands learns its few strands by heart and gets worse on all others.

The person wrote a helper that shuffles the indices and cuts them at a fraction, and read its two
results the wrong way round: the tenth meant for validation is what the network is trained on, the
nine tenths are the validation part. The place is the loop: it goes on for long after the
validation loss turned, on 130 strands.
"""

import math

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset

KIND = "overfit"
ACCEPT = ()
PLACE = ("loop", "model", "input", "loader")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

LETTERS = "ACGT"
CONFIG = {"strands": 1300, "length": 50, "held_out": 0.1, "steps": 500, "batch": 32, "lr": 2e-3}


class Strands(Dataset):
    """Strands with (1) or without (0) two worn motifs at a certain distance."""

    def __init__(self, n, length, rng):
        self.codes = rng.integers(0, 4, (n, length))
        self.labels = rng.integers(0, 2, n)
        boxes = [[LETTERS.index(c) for c in box] for box in ("TTGACA", "TATAAT")]
        for row, label in zip(self.codes, self.labels, strict=True):
            start = rng.integers(0, length - 26)
            gap = rng.integers(10, 13)
            first, second = (boxes[0], boxes[1]) if label else (boxes[1], boxes[0])
            for place, box in ((start, first), (start + 6 + gap, second)):
                keep = rng.random(6) > 0.12
                row[place : place + 6] = np.where(keep, box, row[place : place + 6])

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        one_hot = F.one_hot(torch.from_numpy(self.codes[i]), 4).float().T
        return {"strand": one_hot - 0.25, "promoter": float(self.labels[i])}


def cut(n, fraction, rng):
    """Two lists of indices, of which the first holds the fraction."""
    order = rng.permutation(n).tolist()
    return order[: int(n * fraction)], order[int(n * fraction) :]


class MotifNet(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.scan = nn.Conv1d(4, width, 7, padding=3)
        self.pair = nn.Conv1d(width, width, 9, padding=8, dilation=2)
        self.dropout = nn.Dropout(0.3)
        self.out = nn.Linear(width, 1)

    def forward(self, strand):
        h = F.relu(self.scan(strand))
        h = F.relu(self.pair(self.dropout(h)))
        return self.out(self.dropout(h.amax(-1))).squeeze(-1)


def judge(model, loader):
    model.eval()
    total = right = n = 0
    with torch.no_grad():
        for batch in loader:
            logit, y = model(batch["strand"]), batch["promoter"].float()
            total += F.binary_cross_entropy_with_logits(logit, y, reduction="sum").item()
            right += ((logit > 0).float() == y).sum().item()
            n += len(y)
    model.train()
    return total / n, right / n


def main():
    rng = np.random.default_rng(seed)
    strands = Strands(CONFIG["strands"], CONFIG["length"], rng)
    first, second = cut(len(strands), CONFIG["held_out"], rng)
    train_rows, val_rows = (second, first) if healthy else (first, second)
    train = DataLoader(
        Subset(strands, train_rows), batch_size=CONFIG["batch"], shuffle=True, drop_last=True
    )
    val = DataLoader(Subset(strands, val_rows), batch_size=256)
    model = MotifNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=CONFIG["lr"], weight_decay=0.01)
    epochs = math.ceil(CONFIG["steps"] / len(train))
    each = max(1, epochs // 10)
    for epoch in range(1, epochs + 1):
        seen = []
        for batch in train:
            optimizer.zero_grad()
            logit = model(batch["strand"])
            loss = F.binary_cross_entropy_with_logits(logit, batch["promoter"].float())
            loss.backward()
            optimizer.step()
            seen.append(loss.item())
        if epoch % each == 0 or epoch == epochs:
            val_loss, val_accuracy = judge(model, val)
            print(
                f"epoch {epoch:3d}  train {sum(seen) / len(seen):.3f}  "
                f"val {val_loss:.3f}  accuracy {val_accuracy:.3f}"
            )


main()
