"""A soft decision tree; the sharpness of its gates is what a paper reaches at the end of annealing,
from the first step on.

With 150 times the split's value, the sigmoids are at 0 or 1 for nearly all rows and pass no
gradient: only leaves learn, the splits stay random. The loss falls all the same, less far. The
place is the gates.
"""

import torch
from data import arguments, standardise
from sklearn.datasets import make_friedman1
from torch import nn

KIND = "saturated_activation"
ACCEPT = ()
PLACE = ("gate*", "split*", "")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


class SoftTree(nn.Module):
    def __init__(self, features, depth=5, sharpness=1.0):
        super().__init__()
        self.depth, self.sharpness = depth, sharpness
        self.split = nn.Linear(features, 2**depth - 1)
        self.gate = nn.Sigmoid()
        self.leaf = nn.Parameter(0.1 * torch.randn(2**depth))

    def forward(self, x):
        right = self.gate(self.sharpness * self.split(x))
        reach = torch.ones(len(x), 1)
        first = 0
        for level in range(self.depth):
            here = right[:, first : first + 2**level]
            reach = torch.stack([reach * (1 - here), reach * here], 2).flatten(1)
            first += 2**level
        return reach @ self.leaf


x, y = make_friedman1(2400, n_features=10, noise=0.5, random_state=seed)
x, y = torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)
x, x_test = standardise(x[:1800], x[1800:])
y, y_test = standardise(y[:1800], y[1800:])

tree = SoftTree(10, sharpness=2.0 if healthy else 150.0)
optimizer = torch.optim.Adam(tree.parameters(), lr=0.02)
for epoch in range(12):
    tree.train()
    for rows in torch.randperm(len(x)).split(60):
        optimizer.zero_grad()
        loss = (tree(x[rows]) - y[rows]).square().mean()
        loss.backward()
        optimizer.step()
    tree.eval()
    with torch.no_grad():
        r2 = 1 - (tree(x_test) - y_test).square().mean() / y_test.var()
    print(f"epoch {epoch:2d}  loss {loss.item():.3f}  test R2 {r2.item():.3f}")
