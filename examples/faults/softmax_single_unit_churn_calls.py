"""Will a customer cancel: softmax over the one and only output.

The template was for several classes and ended in `softmax(dim=1)`; for two classes the last layer
got one unit and the softmax stayed. It is 1.0 for everybody, whatever the net says, the loss
stands still at its first value and the gradient is zero. The place is the output.
The twin has a sigmoid.
"""

import numpy as np
import torch
from data import arguments
from sklearn.metrics import roc_auc_score
from torch import nn, optim

KIND = "softmax_single_unit"
ACCEPT = ()
PLACE = ("output*", "last", "loss*")
SILENT = False
EXACT = True
EARLY = True


class ChurnModel(nn.Module):
    def __init__(self, squash):
        super().__init__()
        self.first = nn.Linear(7, 32)
        self.norm = nn.BatchNorm1d(32)
        self.last = nn.Linear(32, 1)
        self.squash = squash

    def forward(self, x):
        return self.squash(self.last(torch.relu(self.norm(self.first(x)))))


def customers(n, rng):
    months = rng.exponential(20, n)
    price = rng.normal(35, 9, n)
    calls = rng.poisson(1.2, n)
    fibre = rng.random(n) < 0.4
    data_gb = rng.gamma(2, 8, n)
    late = rng.poisson(0.4, n)
    age = rng.normal(45, 15, n)
    z = -0.07 * (months - 15) + 0.07 * (price - 35) + 0.7 * (calls - 1) * (calls > 1) + late
    z += -0.9 * fibre - 0.02 * (age - 45) - 0.3
    leaves = rng.random(n) < 1 / (1 + np.exp(-1.3 * z))
    x = np.stack([np.log1p(months), price, calls, fibre, np.log(data_gb), late, age], 1)
    return x.astype(np.float32), leaves.astype(np.float32)[:, None]


def main():
    healthy, seed = arguments(__doc__)
    rng = np.random.default_rng(seed)
    x, y = customers(3000, rng)
    x_val, y_val = customers(800, rng)
    mean, std = x.mean(0), x.std(0)
    x, x_val = torch.tensor((x - mean) / std), torch.tensor((x_val - mean) / std)
    y = torch.tensor(y)
    model = ChurnModel(nn.Sigmoid() if healthy else nn.Softmax(dim=1))
    opt = optim.Adam(model.parameters(), lr=2e-3)
    bce = nn.BCELoss()
    for epoch in range(8):
        model.train()
        for part in torch.randperm(3000).split(60):
            opt.zero_grad()
            loss = bce(model(x[part]), y[part])
            loss.backward()
            opt.step()
        model.eval()
        with torch.no_grad():
            p = model(x_val).numpy()
        auc = roc_auc_score(y_val, p)
        leave = (p > 0.5).mean()
        print(f"epoch {epoch} loss {loss.item():.3f} AUC {auc:.3f} said to leave {leave:.2f}")


main()
