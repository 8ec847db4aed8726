"""Prices of used machines by make and depot (names), which get numbers for embeddings.

Fault: names become numbers in the order in which they appear, and that is done for each part by
itself: "Deutz" is 3 in training and 11 in validation. The place is the input of the validation.
The training loss falls; the validation loss never does.
"""

import numpy as np
import torch
from data import arguments, batches
from torch import nn
from torch.nn import functional as F

KIND = "train_val_mismatch"
ACCEPT = ("overfit", "label_misalignment")
PLACE = ("loader", "input*", "", "make", "depot")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
r = np.random.default_rng(seed)
N = 2400
makes = np.array([f"make-{i:02d}" for i in range(40)])
depots = np.array([f"depot-{i:02d}" for i in range(15)])
make, depot = r.integers(0, 40, N), r.integers(0, 15, N)
numbers = r.normal(size=(N, 4))
price = r.normal(size=40)[make] + 0.5 * r.normal(size=15)[depot] + 0.4 * numbers[:, 0]
price = price + 0.3 * np.abs(numbers[:, 1]) + 0.25 * r.normal(size=N)
y = torch.tensor((price - price.mean()) / price.std(), dtype=torch.float32)


def factorize(names, known=None):
    known = {} if known is None else known
    return torch.tensor([known.setdefault(name, len(known)) for name in names]), known


def encode(rows, codes):
    m, codes_m = factorize(makes[make[rows]], codes and codes[0])
    d, codes_d = factorize(depots[depot[rows]], codes and codes[1])
    return m, d, torch.tensor(numbers[rows], dtype=torch.float32), (codes_m, codes_d)


train, val = np.arange(1800), np.arange(1800, N)
m, d, v, codes = encode(train, None)
m_val, d_val, v_val, _ = encode(val, codes if healthy else None)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.make, self.depot = nn.Embedding(40, 6), nn.Embedding(15, 4)
        self.net = nn.Sequential(nn.Linear(14, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 1))

    def forward(self, m, d, v):
        return self.net(torch.cat([self.make(m), self.depot(d), v], 1)).squeeze(1)


model = Model()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3, weight_decay=1e-4)
for step, (mb, db, vb, yb) in enumerate(batches(m, d, v, y[:1800], size=60, steps=300), 1):
    model.train()
    loss = F.mse_loss(model(mb, db, vb), yb)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 30 == 0:
        model.eval()
        with torch.no_grad():
            error = F.mse_loss(model(m_val, d_val, v_val), y[1800:]).item()
        print(f"step {step}: loss {loss.item():.4f}, validation loss {error:.4f}")
print(f"loss {loss.item():.4f} | validation loss {error:.4f}")
