"""Adagrad with lr_decay=0.9, meant as "nine tenths each epoch"; it divides the rate by 1 + 0.9 t.

After a hundred steps the rate is a ninetieth, on top of Adagrad's own slowing; param_groups still
shows 0.1. The click model halts half-way. The place is the optimizer.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "bad_optimizer_settings"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("optimizer",)
SILENT = True
EXACT = False
EARLY = True

FIELDS = (30, 40, 12, 7)

healthy, seed = arguments(__doc__)
g = torch.Generator().manual_seed(90 + seed)
n = 8000
x = torch.stack([torch.randint(size, (n,), generator=g) for size in FIELDS], 1)
likes = [torch.randn(size, 3, generator=g) for size in FIELDS]
held = torch.stack([table[x[:, i]] for i, table in enumerate(likes)], 1)
pairs = 0.5 * (held.sum(1) ** 2 - (held**2).sum(1)).sum(1)
chance = torch.sigmoid(1.2 * pairs + held[:, :, 0].sum(1) - 0.8)
y = torch.bernoulli(chance, generator=g)
x, x_val, y, y_val = x[:6500], x[6500:], y[:6500], y[6500:]


class FactorizationMachine(nn.Module):
    def __init__(self, fields, dim=4):
        super().__init__()
        self.offsets = torch.tensor([0, *fields[:-1]]).cumsum(0)
        self.linear = nn.Embedding(sum(fields), 1)
        self.factors = nn.Embedding(sum(fields), dim)
        self.bias = nn.Parameter(torch.zeros(()))
        nn.init.normal_(self.linear.weight, std=0.01)
        nn.init.normal_(self.factors.weight, std=0.2)

    def forward(self, ids):
        ids = ids + self.offsets
        v = self.factors(ids)
        second = 0.5 * (v.sum(1).square() - v.square().sum(1)).sum(1)
        return self.bias + self.linear(ids).sum((1, 2)) + second


fm = FactorizationMachine(FIELDS)
optimizer = torch.optim.Adagrad(fm.parameters(), lr=0.1, lr_decay=0.0 if healthy else 0.9)
for epoch in range(10):
    fm.train()
    losses = []
    for rows in torch.randperm(len(x)).split(100):
        loss = F.binary_cross_entropy_with_logits(fm(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    fm.eval()
    with torch.no_grad():
        out = fm(x_val)
        val = F.binary_cross_entropy_with_logits(out, y_val).item()
print(
    f"log loss {sum(losses) / len(losses):.3f}, validation {val:.3f}, "
    f"accuracy {((out > 0) == (y_val > 0.5)).float().mean():.3f}"
)
