"""Faulty bearings (4 %) by an MLP with a balanced sampler; the same rows come again and again in a
batch.

It looks odd: the faulty rows stand several times in one batch, are seen dozens of times per
epoch, and half of a training batch is faulty, but 4 % of the validation. It is sound:
WeightedRandomSampler draws with replacement, each row gets a fresh jitter, and the validation
keeps the true shares and is judged by average precision.
"""

import numpy as np
import torch
from data import arguments
from sklearn.metrics import average_precision_score, roc_auc_score
from torch import nn
from torch.utils.data import DataLoader, Dataset, WeightedRandomSampler

ODD = (
    "Faulty bearings (4 %) by an MLP with a balanced sampler; the same rows come again and "
    "again in a batch"
)
_, seed = arguments(__doc__)
rng = np.random.default_rng(seed + 9)


def bearings(n):
    y = (rng.random(n) < 0.04).astype(np.float32)
    speed = rng.uniform(600, 3000, n)
    load = rng.gamma(4, 0.5, n)
    spectrum = rng.gamma(2, 0.5, (n, 12)) * (1 + 0.3 * load[:, None])
    place = 2 + np.floor(speed / 300).astype(int) % 8
    for shift, gain in ((0, 2.2), (1, 1.2)):
        spectrum[np.arange(n), place + shift] += y * rng.gamma(3, gain / 2, n)
    temperature = 40 + 6 * load + 5 * y + rng.normal(0, 4, n)
    return np.concatenate(
        [np.log(spectrum + 0.05), np.stack([speed / 1000, load, temperature / 10], 1)], 1
    ), y


x, y = bearings(6000)
x_val, y_val = bearings(2500)
mean, std = x.mean(0), x.std(0)
x, x_val = ((a - mean) / std for a in (x, x_val))


class Bearings(Dataset):
    def __init__(self, x, y, jitter):
        self.x, self.y, self.jitter = torch.tensor(x, dtype=torch.float32), torch.tensor(y), jitter

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        x = self.x[i]
        return x + self.jitter * torch.randn_like(x), self.y[i]


train_ds, val_ds = Bearings(x, y, 0.15), Bearings(x_val, y_val, 0.0)
weights = np.where(y == 1, 0.5 / y.sum(), 0.5 / (len(y) - y.sum()))
sampler = WeightedRandomSampler(weights, num_samples=5120, replacement=True)
loader = DataLoader(train_ds, batch_size=64, sampler=sampler)
model = nn.Sequential(
    nn.Linear(15, 48),
    nn.ReLU(),
    nn.Dropout(0.4),
    nn.Linear(48, 24),
    nn.ReLU(),
    nn.Dropout(0.2),
    nn.Linear(24, 1),
)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05)
bce = nn.BCEWithLogitsLoss()
for epoch in range(10):
    model.train()
    losses = []
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = bce(model(xb).squeeze(1), yb)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        out = model(val_ds.x).squeeze(1)
        val_loss = bce(out, val_ds.y).item()
    print(
        f"epoch {epoch + 1} loss {np.mean(losses):.4f} val loss {val_loss:.4f} AP {average_precision_score(y_val, out):.4f}"  # noqa: E501
        f" AUC {roc_auc_score(y_val, out):.4f} recall {((out > 0) & (val_ds.y > 0)).sum().item() / y_val.sum():.3f}"  # noqa: E501
    )
