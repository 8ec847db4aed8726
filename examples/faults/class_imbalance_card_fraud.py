"""A fraud detector is trained on card payments of which one in fifty is a fraud, drawn as they
come.

The loss is lowest when hardly anything is called a fraud, and so the net answers: the accuracy is
98 % and the recall of the frauds next to nothing. The twin draws both classes equally often with a
WeightedRandomSampler. The place is the labels, the loader or the loss.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

KIND = "class_imbalance"
ACCEPT = ()
PLACE = ("label*", "classes*", "loader", "loss*")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


def payments(n, r):
    x = r.normal(size=(n, 8)).astype("float32")
    score = 1.1 * x[:, 0] + 0.9 * x[:, 1] + 0.7 * x[:, 2] * x[:, 3] - 0.8 * x[:, 4]
    fraud = r.random(n) < 1 / (1 + np.exp(5.6 - 1.0 * score))
    return torch.from_numpy(x), torch.from_numpy(fraud.astype("float32"))


r = np.random.default_rng(seed + 40)
x_train, y_train = payments(12_000, r)
x_val, y_val = payments(5_000, r)
print(f"frauds in training: {int(y_train.sum())} of {len(y_train)}")

data = TensorDataset(x_train, y_train)
if healthy:
    weight = torch.where(y_train == 1, 1 / y_train.sum(), 1 / (1 - y_train).sum())
    loader = DataLoader(data, batch_size=128, sampler=WeightedRandomSampler(weight, len(data)))
else:
    loader = DataLoader(data, batch_size=128, shuffle=True)

model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, weight_decay=1e-3)
criterion = nn.BCEWithLogitsLoss()

for epoch in range(1, 11):
    model.train()
    total = 0.0
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = criterion(model(xb).squeeze(1), yb)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(yb)
    model.eval()
    with torch.no_grad():
        out = model(x_val).squeeze(1)
        flagged = out > 0
        recall = flagged[y_val == 1].float().mean().item()
        passed = (~flagged[y_val == 0]).float().mean().item()
        acc = (flagged.float() == y_val).float().mean().item()
    if epoch % 2 == 0:
        print(
            f"epoch {epoch}: loss {total / len(data):.4f} "
            f"val loss {criterion(out, y_val):.4f} acc {acc:.3f} "
            f"fraud recall {recall:.3f} balanced acc {(recall + passed) / 2:.3f}"
        )
