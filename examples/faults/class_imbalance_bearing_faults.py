"""A one-dimensional CNN that finds failing bearings in vibration records, of which 2 in 100 fail,
without any weighting.

The user trains with plain cross-entropy on the records as they come and is content with an
accuracy of 98 %, while the net never names a failing bearing. The place is the loss or the loader
(labels of the input).
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

KIND = "class_imbalance"
ACCEPT = ()
PLACE = ("loss", "loader", "input*")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)


def records(n, seed, share=0.02, length=96):
    r = np.random.default_rng(seed)
    label = (r.random(n) < share).astype(np.int64)
    t = np.arange(length)
    x = np.sin(0.35 * t + r.uniform(0, 6.283, (n, 1))) * r.uniform(0.7, 1.3, (n, 1)) + r.normal(
        0, 0.6, (n, length)
    )
    strength = np.where(label == 1, r.gamma(4, 0.42, n), r.gamma(1.2, 0.25, n))
    period, start = r.integers(14, 20, n), r.integers(0, 14, n)
    for i in range(n):
        for hit in range(start[i], length - 4, period[i]):
            x[i, hit : hit + 4] += strength[i] * np.array([1.0, -0.9, 0.6, -0.3])
    return torch.tensor(x, dtype=torch.float32)[:, None] / x.std(), torch.tensor(label)


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv1d(1, 12, 5, padding=2),
            nn.ReLU(),
            nn.MaxPool1d(2),
            nn.Conv1d(12, 16, 5, padding=2),
            nn.ReLU(),
            nn.AdaptiveAvgPool1d(4),
        )
        self.classifier = nn.Linear(64, 2)

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))


x, y = records(8000, seed)
x_val, y_val = records(4000, seed + 500)
weights = torch.where(y == 1, 1 / (y == 1).sum(), 1 / (y == 0).sum())
sampler = WeightedRandomSampler(weights, len(y)) if healthy else None
loader = DataLoader(TensorDataset(x, y), batch_size=64, sampler=sampler, shuffle=sampler is None)
model = Detector()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-4)

for epoch in range(4):
    model.train()
    for xb, yb in loader:
        loss = nn.functional.cross_entropy(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        guess = model(x_val).argmax(1)
    accuracy = (guess == y_val).float().mean().item()
    recall = (guess[y_val == 1] == 1).float().mean().item()
    kept = (guess[y_val == 0] == 0).float().mean().item()
    print(
        f"epoch {epoch} loss {loss.item():.3f} validation accuracy {accuracy:.3f} recall {recall:.3f} balanced {(recall + kept) / 2:.3f}"  # noqa: E501
    )
