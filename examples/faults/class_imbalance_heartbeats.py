"""Heartbeats of five kinds by a 1-D CNN; nine in ten beats are normal and nothing balances the
classes.

The author trains with the plain cross entropy, watches the accuracy (above 0.9 from the start)
and is content; the two rarest kinds are hardly ever predicted. It should weight the classes (or
sample them). The place is the loss and the loader.
"""

import numpy as np
import torch
from data import arguments
from sklearn.metrics import accuracy_score, f1_score, recall_score
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "class_imbalance"
ACCEPT = ()
PLACE = ("loss", "loader", "criterion")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

NAMES = ["normal", "supra", "ventricular", "fusion", "unknown"]
SHARES = [0.90, 0.03, 0.045, 0.015, 0.01]
T = 64
rng = np.random.default_rng(seed + 8)


def bump(t, centre, width, height):
    return height * np.exp(-0.5 * ((t - centre) / width) ** 2)


def beat(kind):
    t = np.arange(T) + rng.normal(0, 1.2)
    p, q, s, tw = 0.18, 1.0, -0.25, 0.32
    p_at, q_width = 16, 1.6
    if kind == 1:  # supraventricular: early, small P wave
        p, p_at = 0.11, 21
    elif kind == 2:  # ventricular: broad, no P wave
        p, q_width, tw, q = 0.03, 2.7, 0.10, 1.1
    elif kind == 3:  # fusion of normal and ventricular
        p, q_width, tw = 0.11, 2.1, 0.20
    elif kind == 4:  # notched, of a pacemaker and the like
        q, s, tw = 0.85, -0.50, 0.24
    j = lambda v, r: v + rng.normal(0, r)  # noqa: E731
    y = bump(t, j(p_at, 1.2), 2.5, j(p, 0.05)) + bump(t, 30, j(q_width, 0.3), j(q, 0.12))
    y += bump(t, j(34 + q_width, 0.6), 1.8, j(s, 0.09)) + bump(t, j(47, 1.2), 4.0, j(tw, 0.07))
    return y + rng.normal(0, 0.05, T) + 0.08 * np.sin(t / rng.uniform(8, 20) + rng.uniform(0, 6))


def make(n):
    kinds = rng.choice(5, n, p=SHARES)
    x = np.stack([beat(k) for k in kinds])
    x = (x - 0.1) / 0.3
    return torch.tensor(x, dtype=torch.float32).unsqueeze(1), torch.tensor(kinds)


x_train, y_train = make(5000)
x_test, y_test = make(2500)
print("beats per class", torch.bincount(y_train).tolist())

model = nn.Sequential(
    nn.Conv1d(1, 16, 5, padding=2),
    nn.BatchNorm1d(16),
    nn.ReLU(),
    nn.MaxPool1d(2),
    nn.Conv1d(16, 32, 5, padding=2),
    nn.BatchNorm1d(32),
    nn.ReLU(),
    nn.MaxPool1d(2),
    nn.Conv1d(32, 32, 3, padding=1),
    nn.ReLU(),
    nn.AdaptiveAvgPool1d(4),
    nn.Flatten(),
    nn.Dropout(0.3),
    nn.Linear(128, 5),
)
weight = None
if healthy:
    weight = (len(y_train) / (5 * torch.bincount(y_train, minlength=5).float())) ** 0.8
criterion = nn.CrossEntropyLoss(weight=weight)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 12)
loader = DataLoader(TensorDataset(x_train, y_train), batch_size=64, shuffle=True)

for epoch in range(1, 13):
    model.train()
    running = 0.0
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        optimizer.step()
        running += loss.item()
    scheduler.step()
    model.eval()
    with torch.no_grad():
        out = model(x_test)
        pred = out.argmax(1)
    per_class = recall_score(y_test, pred, average=None, labels=range(5), zero_division=0)
    print(
        f"epoch {epoch} loss {running / len(loader):.4f} val {criterion(out, y_test):.4f} acc {accuracy_score(y_test, pred):.4f}",  # noqa: E501
        f"macro F1 {f1_score(y_test, pred, average='macro', zero_division=0):.3f} balanced acc {per_class.mean():.3f} recall",  # noqa: E501
        [round(float(r), 2) for r in per_class],
    )
