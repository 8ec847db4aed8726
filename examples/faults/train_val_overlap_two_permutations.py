"""Nests of birds by habitat: training and validation rows are drawn by two different
permutations.

Each loader shuffles the rows anew before it takes its share, so that about three of four
validation rows are training rows too; the validation looks better than new sites do. The place is
the loader (the input of validation).
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset

KIND = "train_val_overlap"
ACCEPT = ()
PLACE = ("loader", "input*")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)
SHARES = {"train": slice(0, 600), "val": slice(600, 800)}


def sites(n, g):
    """Sixteen measurements of a site and which of four birds nests there (with some chance)."""
    x = torch.randn(n, 16, generator=g)
    forest, water, height, people = (
        x[:, 0] + 0.5 * x[:, 4],
        x[:, 1],
        x[:, 2] - 0.5 * x[:, 5],
        x[:, 3],
    )
    like = torch.stack(
        [
            forest * 1.5 - people,
            water * 1.5 + 0.6 * forest * height,
            height * 1.6 - water,
            people + 0.5 * x[:, 6] ** 2,
        ],
        1,
    )
    gumbel = -torch.log(-torch.log(torch.rand(n, 4, generator=g).clamp(1e-6, 1 - 1e-6)))
    return x, (1.5 * like + gumbel).argmax(1)


class Habitat(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.gate, self.value = nn.Linear(16, width), nn.Linear(16, width)
        self.mix, self.bird = nn.Linear(width, width), nn.Linear(width, 4)

    def forward(self, x):
        h = torch.sigmoid(self.gate(x)) * torch.tanh(self.value(x))
        return self.bird(F.relu(self.mix(h)))


def loader(dataset, share):
    g = torch.Generator().manual_seed(seed if healthy else seed + len(share))
    rows = torch.randperm(len(dataset), generator=g)[SHARES[share]]
    return DataLoader(Subset(dataset, rows.tolist()), batch_size=50, shuffle=share == "train")


@torch.no_grad()
def score(model, given):
    model.eval()
    hits = sum((model(x).argmax(1) == y).sum().item() for x, y in given)
    loss = sum(F.cross_entropy(model(x), y, reduction="sum").item() for x, y in given)
    count = sum(len(y) for _, y in given)
    return f"{loss / count:.4f} accuracy {hits / count:.3f}"


g = torch.Generator().manual_seed(100 + seed)
dataset = TensorDataset(*sites(800, g))
new_sites = [sites(2000, g)]
train, val = loader(dataset, "train"), loader(dataset, "val")
model = Habitat()
optimizer = torch.optim.AdamW(model.parameters(), lr=1.5e-3, weight_decay=1e-2)
for epoch in range(16):
    model.train()
    total = 0.0
    for x, y in train:
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / len(train)
    print(f"epoch {epoch} loss {total:.4f} val {score(model, val)}")
print(f"at new sites: {score(model, new_sites)}")
