"""A 1-D CNN looks for ectopic heart beats, 2 % of all beats; with the plain loss it calls every
beat normal.

The accuracy of 98 % looks fine, but hardly one of the ectopic beats is found. The twin draws both
classes equally often. The place is the data/loader (or the loss, which has no weights).
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

KIND = "class_imbalance"
ACCEPT = ()
PLACE = ("loader", "loss", "input*")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

r = np.random.default_rng(140 + seed)
t = np.linspace(-1, 1, 64)


def beats(n, ectopic):
    """Beats of one class: P wave, QRS complex, T wave, noise; ectopic: wider QRS, smaller P, T turned."""  # noqa: E501

    def bump(center, width, height):
        center, width, height = (np.asarray(v).reshape(-1, 1) for v in (center, width, height))
        return height * np.exp(-0.5 * ((t - center) / width) ** 2)

    strange = r.normal(0.85, 0.45, n) if ectopic else r.normal(0.0, 0.4, n)
    p = bump(r.normal(-0.5, 0.04, n), 0.08, r.normal(0.25, 0.08, n) - 0.15 * strange)
    qrs = bump(
        r.normal(0, 0.02, n), np.clip(0.05 + 0.03 * strange, 0.03, None), r.normal(1.1, 0.15, n)
    )
    wave_t = bump(r.normal(0.5, 0.05, n), 0.14, r.normal(0.35, 0.12, n) - 0.25 * strange)
    return p + qrs + wave_t + r.normal(0, 0.15, (n, 64)) + r.normal(0, 0.1, (n, 1))


def dataset(normal, ectopic):
    x = np.concatenate([beats(normal, False), beats(ectopic, True)])
    y = np.repeat([0, 1], [normal, ectopic])
    return torch.tensor(x, dtype=torch.float32).unsqueeze(1), torch.tensor(y)


x, y = dataset(3920, 80)
x_val, y_val = dataset(4900, 100)
mean, std = x.mean(), x.std()
x, x_val = (x - mean) / std, (x_val - mean) / std

net = nn.Sequential(
    nn.Conv1d(1, 8, 9, stride=2, padding=4),
    nn.ReLU(),
    nn.Conv1d(8, 12, 5, stride=2, padding=2),
    nn.ReLU(),
    nn.AdaptiveAvgPool1d(4),
    nn.Flatten(),
    nn.Dropout(0.2),
    nn.Linear(48, 2),
)
weights = torch.where(y == 1, 1 / 80, 1 / 3920)
sampler = WeightedRandomSampler(weights, len(y)) if healthy else None
loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=sampler is None, sampler=sampler)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
for epoch in range(10):
    net.train()
    total = 0.0
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(xb), yb)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(yb)
    net.eval()
    with torch.no_grad():
        said = net(x_val).argmax(1)
    recall = [(said[y_val == c] == c).float().mean().item() for c in (0, 1)]
    print(
        f"epoch {epoch} loss {total / len(y):.3f} accuracy {(said == y_val).float().mean():.3f} "
        f"recall of ectopic {recall[1]:.3f} balanced accuracy {sum(recall) / 2:.3f}"
    )
