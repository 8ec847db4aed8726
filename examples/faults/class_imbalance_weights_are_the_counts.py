"""Soil samples of five kinds; the loss is given the share of each kind as its weight.

"Weight the classes by their frequency", and so it was done: the kind that makes up two thirds of
the samples counts twenty times as much as the rarest one. It is one over the counts that makes up
for them, as in the twin. The place is the loss.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "class_imbalance"
ACCEPT = ()
PLACE = ("loss*", "label*", "loader")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
SHARES = torch.tensor([0.66, 0.16, 0.10, 0.05, 0.03])
COLUMNS = 14


def samples(count, centres, rng):
    kinds = torch.multinomial(SHARES, count, replacement=True, generator=rng)
    return centres[kinds] + torch.randn(count, COLUMNS, generator=rng), kinds


rng = torch.Generator().manual_seed(seed)
torch.manual_seed(seed)
centres = 0.7 * torch.randn(len(SHARES), COLUMNS, generator=rng)
x, y = samples(2400, centres, rng)
x_val, y_val = samples(1200, centres, rng)

counts = torch.bincount(y, minlength=len(SHARES)).float()
weight = counts.sum() / (len(counts) * counts) if healthy else counts / counts.sum()
criterion = nn.CrossEntropyLoss(weight=weight)
model = nn.Sequential(nn.Linear(COLUMNS, 32), nn.ReLU(), nn.Linear(32, len(SHARES)))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
loader = DataLoader(TensorDataset(x, y), batch_size=40, shuffle=True)
for epoch in range(8):
    model.train()
    for rows, kinds in loader:
        loss = criterion(model(rows), kinds)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        said = model(x_val).argmax(1)
        val = nn.functional.cross_entropy(model(x_val), y_val)
    found = torch.stack([(said[y_val == kind] == kind).float().mean() for kind in range(5)])
    print(f"epoch {epoch + 1}: validation {val:.3f}, found of each {found.mean():.3f}")
