"""Edible or not, by a table of a mushroom's features; the rate is 1e-6 where 1e-3 was meant.

`lr=1e-6` was left from the last stage of another model's fine-tuning. After all epochs the network
has hardly left its first guess, and the loss falls in the third digit.
The place is the optimizer. The twin has 1e-3.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "learning_rate_too_low"
ACCEPT = ()
PLACE = ("optimizer",)
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
KINDS = (6, 4, 10, 9, 5, 7)


class Mushrooms(nn.Module):
    def __init__(self, dim=5):
        super().__init__()
        self.columns = nn.ModuleList(nn.Embedding(k, dim) for k in KINDS)
        self.norm = nn.LayerNorm(dim * len(KINDS))
        self.layers = nn.Sequential(nn.Linear(dim * len(KINDS), 48), nn.GELU(), nn.Linear(48, 1))

    def forward(self, x):
        parts = [table(x[:, i]) for i, table in enumerate(self.columns)]
        return self.layers(self.norm(torch.cat(parts, 1))).squeeze(1)


def collect(n, g):
    x = torch.stack([torch.randint(0, k, (n,), generator=g) for k in KINDS], 1)
    smell = torch.tensor([-1.0, -0.5, 2.0, 1.0, -1.5, 0.5, 2.5, -0.5, 0.0, -2.0])[x[:, 2]]
    score = smell + 1.5 * ((x[:, 0] == 2) & (x[:, 1] > 1)) - 1.2 * (x[:, 3] % 3 == 0)
    return x, (score + 0.3 * torch.randn(n, generator=g) > 0).float()


x, y = collect(3000, torch.Generator().manual_seed(seed))
train = DataLoader(TensorDataset(x[:2400], y[:2400]), batch_size=30, shuffle=True)
model = Mushrooms()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3 if healthy else 1e-6)
for epoch in range(8):
    total = 0.0
    for xb, yb in train:
        loss = nn.functional.binary_cross_entropy_with_logits(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    with torch.no_grad():
        right = ((model(x[2400:]) > 0) == (y[2400:] > 0.5)).float().mean().item()
    print(f"epoch {epoch}: loss {total / len(train):.4f} validation {right:.3f}")
