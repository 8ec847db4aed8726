"""Hinton's forward-forward algorithm on digits: each layer has its own goodness loss and
optimizer.
"""

import torch
import torch.nn.functional as F
from data import arguments, digits
from torch import nn

ODD = (
    "the layers are cut apart by detach(): no gradient "
    "ever goes from one to the next, three optimizers"
)

_, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)
THRESHOLD = 2.0


def with_label(x, y):
    return torch.cat([3 * F.one_hot(y, 10).float(), x], 1)


class FFLayer(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)
        self.optimizer = torch.optim.Adam(self.parameters(), lr=3e-3)

    def forward(self, x):
        direction = x / (x.norm(dim=1, keepdim=True) + 1e-4)
        return F.relu(self.linear(direction * x.shape[1] ** 0.5))

    def learn(self, positive, negative):
        good, bad = self(positive).pow(2).mean(1), self(negative).pow(2).mean(1)
        loss = F.softplus(torch.cat([THRESHOLD - good, bad - THRESHOLD])).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        with torch.no_grad():
            return self(positive), self(negative), loss.item()


layers = nn.ModuleList([FFLayer(74, 128), FFLayer(128, 128), FFLayer(128, 128)])


@torch.no_grad()
def predict(x):
    goodness = []
    for label in range(10):
        h, total = with_label(x, torch.full((len(x),), label)), 0.0
        for layer in layers:
            h = layer(h)
            total = total + h.pow(2).mean(1)
        goodness.append(total)
    return torch.stack(goodness, 1).argmax(1)


for epoch in range(16):
    losses = [0.0] * len(layers)
    batches = torch.randperm(len(x)).split(64)
    for rows in batches:
        wrong = (y[rows] + torch.randint(1, 10, (len(rows),))) % 10
        pos, neg = with_label(x[rows], y[rows]), with_label(x[rows], wrong)
        for k, layer in enumerate(layers):
            pos, neg, loss = layer.learn(pos, neg)
            losses[k] += loss / len(batches)
    if epoch % 5 == 0:
        acc, val_acc = (predict(x) == y).float().mean(), (predict(x_val) == y_val).float().mean()
        print(
            f"epoch {epoch}: losses {[round(v, 3) for v in losses]} "
            f"train {acc:.3f} val {val_acc:.3f}"
        )
