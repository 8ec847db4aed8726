"""A residual-free network of five layers for tabular credit scores, whose weights are drawn from
the unit normal distribution.

The user initialises every linear layer by normal_(std=1), whatever its width: activations grow
about tenfold per layer and the first loss is in the thousands. The place is the linear layers
(hidden and head), or their parameters.
"""

import itertools

import numpy as np
import torch
from data import arguments, standardise
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "poor_weight_init"
ACCEPT = ()
PLACE = ("hidden*", "head*", "")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)


def applicants(n, seed):
    r = np.random.default_rng(seed)
    income, age = r.lognormal(1.1, 0.4, n), r.uniform(20, 70, n)
    debt, late = r.gamma(2, 0.6, n), r.poisson(0.7, n)
    years, loan = r.gamma(1.5, 4, n), r.gamma(3, 0.5, n)
    noise = r.normal(0, 1, (n, 6))
    risk = (
        1.4 * np.log(debt + loan + 0.2)
        - 1.6 * np.log(income)
        + 0.7 * late * (years < 4)
        + 0.002 * (age - 45) ** 2
    )
    grade = np.digitize(risk + r.normal(0, 0.35, n), [-1.0, 0.0, 1.0])
    x = np.column_stack([np.log(income), age, debt, late, years, loan, noise])
    return torch.tensor(x, dtype=torch.float32), torch.tensor(grade)


class Scorer(nn.Module):
    def __init__(self, columns, width=128, depth=4, grades=4):
        super().__init__()
        sizes = [columns] + [width] * depth
        self.hidden = nn.ModuleList(nn.Linear(a, b) for a, b in itertools.pairwise(sizes))
        self.head = nn.Linear(width, grades)
        for layer in [*self.hidden, self.head]:
            if healthy:
                nn.init.kaiming_normal_(
                    layer.weight, nonlinearity="linear" if layer is self.head else "relu"
                )
            else:
                nn.init.normal_(layer.weight, std=1.0)
            nn.init.zeros_(layer.bias)

    def forward(self, x):
        for layer in self.hidden:
            x = torch.relu(layer(x))
        return self.head(x)


def accuracy(model, x, y):
    with torch.no_grad():
        return (model(x).argmax(1) == y).float().mean().item()


x, y = applicants(6000, seed)
x, x_val = standardise(x[:5000], x[5000:])
y, y_val = y[:5000], y[5000:]
model = Scorer(x.shape[1])
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
criterion = nn.CrossEntropyLoss()
for epoch in range(6):
    for xb, yb in DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True):
        loss = criterion(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
    with torch.no_grad():
        val = criterion(model(x_val), y_val).item()
    print(
        f"epoch {epoch} loss {loss.item():.3f} validation loss {val:.3f} accuracy {accuracy(model, x_val, y_val):.3f}"  # noqa: E501
    )
