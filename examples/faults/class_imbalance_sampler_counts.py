"""Intrusion classes drawn with weights that are class counts, so that rare ones get rarer still.

The person wanted WeightedRandomSampler to balance four classes (80, 12, 5 and 3 per cent) and gave
each row the number of rows of its class as its weight, where it ought to be one over that number.
The common class becomes nearly the only one in training. The place is the loader.
"""

import numpy as np
import torch
from data import arguments
from sklearn.metrics import balanced_accuracy_score, recall_score
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

KIND = "class_imbalance"
ACCEPT = ()
PLACE = ("loader", "labels", "input")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

NAMES = ("normal", "scan", "flood", "intruder")
SHARES = (0.80, 0.12, 0.05, 0.03)


def connections(rows, rng):
    """Twelve measurements of each connection: rates, sizes, and how they go together."""
    kind = rng.choice(4, size=rows, p=SHARES)
    duration = rng.gamma(2.0, 1.0, rows) * np.array([3.0, 0.6, 0.9, 4.5])[kind]
    packets = rng.lognormal(np.array([2.5, 2.2, 4.2, 2.7])[kind], 0.7)
    size = rng.normal(np.array([6.0, 4.6, 4.9, 6.5])[kind], 1.0)
    ports = rng.poisson(np.array([1.5, 6.0, 1.2, 2.0])[kind])
    failed = rng.poisson(np.array([0.2, 1.2, 0.5, 2.6])[kind])
    hour = rng.uniform(0, 24, rows) * (kind != 3) + rng.normal(3.5, 1.5, rows) * (kind == 3)
    columns = [duration, np.log(packets), size, ports, failed, np.sin(hour / 3.82)]
    columns += [np.cos(hour / 3.82), packets / (duration + 1), size * ports]
    columns += [rng.normal(size=rows) for _ in range(3)]
    return np.stack(columns, 1).astype(np.float32), kind


def balancing_sampler(labels):
    counts = np.bincount(labels, minlength=len(NAMES)).astype(np.float64)
    per_class = 1.0 / counts if healthy else counts
    weights = torch.as_tensor(per_class[labels])
    return WeightedRandomSampler(weights, num_samples=len(labels), replacement=True)


rng = np.random.default_rng(seed)
x_train, y_train = connections(6000, rng)
x_val, y_val = connections(3000, rng)
scaler = StandardScaler().fit(x_train)
train_set = TensorDataset(torch.tensor(scaler.transform(x_train)), torch.tensor(y_train))
train_loader = DataLoader(train_set, batch_size=128, sampler=balancing_sampler(y_train))
val_x = torch.tensor(scaler.transform(x_val))

net = nn.Sequential(
    nn.Linear(12, 64),
    nn.BatchNorm1d(64),
    nn.ReLU(),
    nn.Dropout(0.1),
    nn.Linear(64, 32),
    nn.ReLU(),
    nn.Linear(32, len(NAMES)),
)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.AdamW(net.parameters(), lr=2e-3, weight_decay=1e-3)

for epoch in range(10):
    net.train()
    losses, hits, seen = [], 0, 0
    for features, target in train_loader:
        optimizer.zero_grad()
        logits = net(features)
        loss = criterion(logits, target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        hits += (logits.argmax(1) == target).sum().item()
        seen += len(target)
    net.eval()
    with torch.no_grad():
        guess = net(val_x).argmax(1).numpy()
    print(
        f"epoch {epoch}: loss {np.mean(losses):.3f} train acc {hits / seen:.3f} "
        f"val acc {(guess == y_val).mean():.3f} "
        f"val balanced {balanced_accuracy_score(y_val, guess):.3f}"
    )

for name, value in zip(NAMES, recall_score(y_val, guess, average=None), strict=True):
    print(f"  recall of {name:<9} {value:.2f}")
