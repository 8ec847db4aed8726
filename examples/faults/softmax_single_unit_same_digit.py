"""A siamese network says whether two pictures show the same digit. Its verdict is a single number,
made a probability by a softmax over the last dimension, and the loss is the binary cross-entropy.

A softmax over one number is always 1: the verdict is "the same" for every pair, no gradient flows,
and the loss never moves. The place is the verdict's softmax, which should be a sigmoid.
"""

import torch
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "softmax_single_unit"
ACCEPT = ()
PLACE = ("verdict*",)
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


class Pairs(Dataset):
    """Each picture with a partner, of the same digit every second time."""

    def __init__(self, x, y, fixed=False):
        self.x, self.y, self.fixed = x, y, fixed
        self.of = [(y == d).nonzero().squeeze(1) for d in range(10)]

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i) if self.fixed else None
        same = i % 2
        digit = int(self.y[i])
        if not same:
            digit = (digit + int(torch.randint(1, 10, (), generator=g))) % 10
        rows = self.of[digit]
        j = rows[torch.randint(len(rows), (), generator=g)]
        return self.x[i], self.x[j], torch.tensor(float(same))


class Siamese(nn.Module):
    def __init__(self):
        super().__init__()
        self.tower = nn.Sequential(
            nn.Conv2d(1, 16, 3),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(32 * 16, 32),
        )
        self.verdict = nn.Sequential(
            nn.Linear(32, 16),
            nn.ReLU(),
            nn.Linear(16, 1),
            nn.Sigmoid() if healthy else nn.Softmax(dim=-1),
        )

    def forward(self, a, b):
        return self.verdict((self.tower(a) - self.tower(b)).abs()).squeeze(-1)


x, y, x_val, y_val = images(seed)
train = DataLoader(Pairs(x, y), batch_size=32, shuffle=True, drop_last=True)
val = DataLoader(Pairs(x_val, y_val, fixed=True), batch_size=150)
model = Siamese()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-4)
bce = nn.BCELoss()

for epoch in range(12):
    model.train()
    total = 0.0
    for a, b, same in train:
        optimizer.zero_grad()
        loss = bce(model(a, b), same)
        loss.backward()
        optimizer.step()
        total += loss.item() / len(train)
    model.eval()
    with torch.no_grad():
        out, same = map(torch.cat, zip(*[(model(a, b), s) for a, b, s in val], strict=False))
    right = ((out > 0.5) == (same > 0.5)).float().mean()
    print(
        f"epoch {epoch:2d} train {total:.4f} val {bce(out, same).item():.4f} accuracy {right:.3f}"
    )
