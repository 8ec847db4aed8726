"""Barlow Twins: the cross-correlation of two views shall be the identity."""

import torch
from data import arguments, batches, digits
from torch import nn

ODD = "no labels, a hand-made loss of large values that ends far above 0"

_, seed = arguments(__doc__)
x, *_ = digits(seed)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(64, 64), nn.BatchNorm1d(64), nn.ReLU())
        self.projector = nn.Linear(64, 24, bias=False)

    def forward(self, rows):
        z = self.projector(self.backbone(rows))
        return (z - z.mean(0)) / (z.std(0) + 1e-5)


model = Encoder()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for (rows,) in batches(x, size=128, steps=250, seed=seed):
    a = model(rows + 0.3 * torch.randn_like(rows))
    b = model(rows * (torch.rand_like(rows) > 0.2))
    c = a.T @ b / len(rows)
    on = (c.diag() - 1).pow(2).sum()
    off = c.pow(2).sum() - c.diag().pow(2).sum()
    loss = on + 0.05 * off
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}")
