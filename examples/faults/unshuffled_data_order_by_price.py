"""House prices from a query that ends in ORDER BY price, batched by slices from top to bottom:
each batch has houses of one price, cheap first.

In every epoch the net follows the price upwards, its validation error is that of dear houses. The
place is the loader.
"""

import itertools
import math

import torch
from data import arguments, houses
from torch import nn

KIND = "unshuffled_data"
ACCEPT = ()
PLACE = ("loader", "loop", "input*", "target*")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = houses(seed)
by_price = y.argsort()  # SELECT ... FROM sales ORDER BY price
x, y = x[by_price], y[by_price]


def batches(batch_size):
    order = torch.randperm(len(x)) if healthy else torch.arange(len(x))
    for start in range(0, len(x), batch_size):
        rows = order[start : start + batch_size]
        yield x[rows], y[rows, None]


class Regressor:
    """fit and predict as of scikit-learn."""

    def __init__(self, hidden=(32, 32), lr=0.02, epochs=25, batch_size=50):
        sizes = (x.shape[1], *hidden)
        layers = []
        for a, b in itertools.pairwise(sizes):
            layers += [nn.Linear(a, b), nn.ReLU()]
        self.net = nn.Sequential(*layers, nn.Linear(sizes[-1], 1))
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=lr, momentum=0.9)
        self.epochs, self.batch_size = epochs, batch_size

    def fit(self):
        for epoch in range(self.epochs):
            total = 0.0
            for xb, yb in batches(self.batch_size):
                error = nn.functional.mse_loss(self.net(xb), yb)
                self.optimizer.zero_grad()
                error.backward()
                self.optimizer.step()
                total += error.item() * len(xb)
            if epoch % 6 == 0:
                print(f"epoch {epoch}: mse {total / len(x):.3f}, validation R2 {self.score():.3f}")
        return self

    def score(self):
        with torch.no_grad():
            error = (self.net(x_val).squeeze(1) - y_val).pow(2).mean()
        return 1 - (error / y_val.var()).item()


model = Regressor().fit()
with torch.no_grad():
    fit = (model.net(x).squeeze(1) - y).pow(2).mean().item()
print(f"rmse of all training rows {math.sqrt(fit):.3f}, validation R2 {model.score():.3f}")
