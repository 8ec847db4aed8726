"""Ordinal regression: how ill a patient will be, in five grades, by cumulative logits."""

import torch
from data import arguments, batches, diabetes
from torch import nn

ODD = (
    "five classes but one score and four thresholds; exact accuracy is low though the order "
    "is learned"
)

_, seed = arguments(__doc__)
x, y, x_val, y_val = diabetes(seed)
edges = torch.quantile(y, torch.tensor([0.2, 0.4, 0.6, 0.8]))
grade, grade_val = torch.bucketize(y, edges), torch.bucketize(y_val, edges)


class Ordinal(nn.Module):
    def __init__(self):
        super().__init__()
        self.score = nn.Linear(10, 1)
        self.first = nn.Parameter(torch.tensor(-1.0))
        self.gaps = nn.Parameter(torch.zeros(3))

    def forward(self, x):
        steps = nn.functional.softplus(self.gaps).cumsum(0)
        thresholds = torch.cat([self.first[None], self.first + steps])
        return self.score(x) - thresholds


model = Ordinal()
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
for row, g in batches(x, grade, size=33, steps=300, seed=seed):
    above = (g[:, None] > torch.arange(4)).float()
    loss = nn.functional.binary_cross_entropy_with_logits(model(row), above)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
with torch.no_grad():
    guess = (model(x_val) > 0).sum(1)
off = (guess - grade_val).abs().float()
print(
    f"loss {loss.item():.3f}, exact {(off == 0).float().mean():.3f}, "
    f"within one {(off < 2).float().mean():.3f}"
)
