"""BYOL on customer records: an online net predicts what a slowly moving copy of it says about
another corruption of the same row.

Looks odd: there are no labels and no negatives, the loss is negative (minus twice a cosine), half
of the parameters never require a gradient and change nevertheless, by an exponential mean. It is
sound: the embeddings keep their spread and a linear probe on them gets better than on raw
columns.
"""

import copy

import numpy as np
import torch
from data import arguments
from sklearn.linear_model import LogisticRegression
from torch import nn

ODD = (
    "BYOL on customer records: an online net predicts what a slowly moving copy of it says "
    "about another corruption of the same row"
)

_, seed = arguments(__doc__)
N, COLS, CLASSES, LABELLED = 6000, 48, 6, 150


def customers():
    r = np.random.default_rng(44 + seed)
    centre = r.normal(0, 1.5, (CLASSES, 6))
    y = r.integers(0, CLASSES, N)
    z = centre[y] + r.normal(size=(N, 6))
    x = np.tanh(z @ r.normal(0, 0.5, (6, 32))) @ r.normal(0, 0.45, (32, COLS)) + 1.3 * r.normal(
        size=(N, COLS)
    )
    return torch.tensor((x - x.mean(0)) / x.std(0), dtype=torch.float32), y


def mlp(i, h, o):
    return nn.Sequential(nn.Linear(i, h), nn.BatchNorm1d(h), nn.ReLU(), nn.Linear(h, o))


class BYOL(nn.Module):
    def __init__(self, momentum=0.99):
        super().__init__()
        self.online = nn.ModuleDict({"encoder": mlp(COLS, 128, 64), "projector": mlp(64, 128, 48)})
        self.target = copy.deepcopy(self.online).requires_grad_(False)
        self.predictor = mlp(48, 96, 48)
        self.momentum = momentum

    def forward(self, a, b):
        def side(u, v):
            p = self.predictor(self.online["projector"](self.online["encoder"](u)))
            with torch.no_grad():
                t = self.target["projector"](self.target["encoder"](v))
            return -2 * nn.functional.cosine_similarity(p, t, dim=1).mean()

        return 0.5 * (side(a, b) + side(b, a))

    @torch.no_grad()
    def update_target(self):
        for t, o in zip(self.target.parameters(), self.online.parameters(), strict=False):
            t.lerp_(o, 1 - self.momentum)


def corrupt(x, pool, p=0.3):
    other = pool[torch.randint(0, len(pool), x.shape), torch.arange(COLS)]
    return torch.where(torch.rand_like(x) < p, other, x)


x, y = customers()
pool, x_val, y_val = x[:4800], x[4800:], y[4800:]
model = BYOL()
opt = torch.optim.AdamW(
    [p for p in model.parameters() if p.requires_grad], lr=1e-3, weight_decay=1e-4
)
raw = LogisticRegression(max_iter=500).fit(x[:LABELLED], y[:LABELLED]).score(x_val, y_val)
for step in range(1, 801):
    model.train()
    batch = pool[torch.randint(0, len(pool), (192,))]
    loss = model(corrupt(batch, pool), corrupt(batch, pool))
    opt.zero_grad()
    loss.backward()
    opt.step()
    model.update_target()
    if step % 200 == 0:
        model.eval()
        with torch.no_grad():
            f = model.online["encoder"](x)
        f = ((f - f.mean(0)) / f.std(0)).numpy()
        probe = LogisticRegression(max_iter=500, C=0.1).fit(f[:LABELLED], y[:LABELLED])
        print(
            f"step {step} loss {loss.item():.4f} probe {probe.score(f[4800:], y_val):.4f} (raw columns {raw:.4f})"  # noqa: E501
        )
