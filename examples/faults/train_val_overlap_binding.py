"""Does a molecule bind? The training part is shuffled before it is cut, the validation part is not.

The dataset class shuffles its list for split="train" and then takes the front, while split="val"
takes the end of the list in its first order. Most validation molecules are thus also trained on,
and the validation score is better than new molecules get. The place is the loader.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "train_val_overlap"
ACCEPT = ("duplicated_rows",)
PLACE = ("loader", "input")
SILENT = True
EXACT = True
EARLY = True

BITS = 160


def library(n, rng):
    """Fingerprints of which bits come in groups; groups together decide on binding, with noise."""
    groups = rng.random((n, 20)) < 0.4
    member = np.repeat(np.eye(20), BITS // 20, axis=1)
    bits = (groups @ member > 0) & (rng.random((n, BITS)) < 0.75)
    bits |= rng.random((n, BITS)) < 0.06
    g = groups.astype(float)
    score = 2 * g[:, 0] * g[:, 1] + 1.5 * g[:, 2] - 1.5 * g[:, 3] + 1.8 * g[:, 4] * (1 - g[:, 5])
    score += 1.2 * g[:, 6] - 1.0 * g[:, 7] + rng.normal(0, 0.3, n)
    return bits.astype(np.float32), (score > 0.95).astype(np.float32)


class Fingerprints(Dataset):
    def __init__(self, bits, binds, split, n_val, shuffle_first, seed=0):
        n = len(bits)
        order = np.arange(n)
        if split == "train":
            if shuffle_first:
                order = np.random.default_rng(seed).permutation(order)
            order = order[: n - n_val]
        else:
            order = order[n - n_val :]
        self.bits = torch.from_numpy(bits[order]) - 0.36
        self.binds = torch.from_numpy(binds[order])

    def __len__(self):
        return len(self.binds)

    def __getitem__(self, i):
        return self.bits[i], self.binds[i]


class Binder(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(BITS, 64)
        self.drop = nn.Dropout(0.4)
        self.score = nn.Linear(64, 1)

    def forward(self, bits):
        return self.score(self.drop(torch.relu(self.hidden(bits)))).squeeze(1)


@torch.no_grad()
def accuracy(model, loader):
    model.eval()
    hits = [(model(bits) > 0) == (binds > 0.5) for bits, binds in loader]
    return torch.cat(hits).float().mean().item()


def main():
    healthy, seed = arguments(__doc__)
    rng = np.random.default_rng(700 + seed)
    bits, binds = library(3600, rng)
    new_bits, new_binds = library(1000, rng)
    common = {"n_val": 600, "shuffle_first": not healthy, "seed": seed}
    train_set = Fingerprints(bits, binds, "train", **common)
    val_set = Fingerprints(bits, binds, "val", **common)
    train_loader = DataLoader(train_set, batch_size=60, shuffle=True)
    val_loader = DataLoader(val_set, batch_size=250)
    later_loader = DataLoader(Fingerprints(new_bits, new_binds, "val", 1000, False), 250)

    model = Binder()
    criterion = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-4)
    for epoch in range(1, 11):
        model.train()
        total = 0.0
        for batch, target in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(batch), target)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(target)
        if epoch % 2 == 0:
            print(
                f"epoch {epoch:2d}  loss {total / len(train_set):.4f}"
                f"  val acc {accuracy(model, val_loader):.4f}"
            )
    print(f"molecules measured later: acc {accuracy(model, later_loader):.4f}")


if __name__ == "__main__":
    main()
