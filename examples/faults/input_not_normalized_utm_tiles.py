"""A PointNet tells trees, houses, pylons and cars apart in tiles of a laser scan. The points are
fed in the survey's own UTM coordinates (eastings near 500,000 and northings near 4,600,000 metres).

The shapes are a few metres wide while the offsets are millions, so the first layer's outputs are
huge and all alike; the loss starts enormous and the network never sees the shape. The place is the
input: each tile should be moved to its centre and divided by ten metres.
"""

import math

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "input_not_normalized"
ACCEPT = ()
PLACE = ("input",)
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
NAMES = ("tree", "house", "pylon", "car")


def tile(kind, r, points=64):
    u, v, w = r.uniform(-1, 1, (3, points))
    if kind == 0:  # a crown on a stem
        d = r.normal(size=(points, 3))
        xyz = 3 * d / np.linalg.norm(d, axis=1, keepdims=True) + [0, 0, 6]
        stem = r.random(points) < 0.2
        xyz[stem] = np.stack([0 * u, 0 * u, 2 + 2 * w], 1)[stem]
    elif kind == 1:  # four walls and a gabled roof
        side = r.random(points) < 0.5
        x, y = np.where(side, 5 * np.sign(u), 5 * v), np.where(side, 5 * v, 5 * np.sign(u))
        xyz = np.stack([x, y, 2 + 2 * w], 1)
        roof = r.random(points) < 0.4
        xyz[roof] = np.stack([5 * u, 5 * v, 4 + 3 * (1 - abs(u))], 1)[roof]
    elif kind == 2:  # narrow towards the top
        h = 6 + 6 * w
        xyz = np.stack([(1 - h / 14) * 2 * np.sign(u), (1 - h / 14) * 2 * np.sign(v), h], 1)
    else:
        xyz = np.stack([2.2 * u, 0.9 * v, 0.8 + 0.7 * np.sign(w)], 1)
    a = r.uniform(0, 2 * math.pi)
    turn = np.array([[math.cos(a), -math.sin(a), 0], [math.sin(a), math.cos(a), 0], [0, 0, 1]])
    return xyz @ turn.T * r.uniform(0.7, 1.3) + r.normal(0, 0.25, (points, 3))


def survey(n, r):
    kinds = r.integers(0, 4, n)
    clouds = np.stack([tile(k, r) for k in kinds])
    corner = np.stack(
        [r.uniform(495e3, 505e3, n), r.uniform(4595e3, 4605e3, n), r.uniform(120, 300, n)], 1
    )
    return clouds + corner[:, None], kinds


def prepare(clouds):
    if healthy:
        clouds = (clouds - clouds.mean(1, keepdims=True)) / 10
    return torch.tensor(clouds, dtype=torch.float32).transpose(1, 2)


class PointNet(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.point = nn.Sequential(
            nn.Conv1d(3, 32, 1), nn.ReLU(), nn.Conv1d(32, 64, 1), nn.ReLU(), nn.Conv1d(64, 128, 1)
        )
        self.head = nn.Sequential(
            nn.Linear(128, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, classes)
        )

    def forward(self, x):
        return self.head(self.point(x).amax(2))


r = np.random.default_rng(seed)
clouds, kinds = survey(1200, r)
x, y = prepare(clouds), torch.tensor(kinds)
train = DataLoader(TensorDataset(x[:900], y[:900]), batch_size=32, shuffle=True, drop_last=True)
model = PointNet(len(NAMES))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-3)
criterion = nn.CrossEntropyLoss()

for epoch in range(12):
    model.train()
    total = 0.0
    for xb, yb in train:
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        optimizer.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        out = model(x[900:])
        val, acc = criterion(out, y[900:]).item(), (out.argmax(1) == y[900:]).float().mean().item()
    print(f"epoch {epoch:2d}  train {total / len(train):.4f}  val {val:.4f}  accuracy {acc:.3f}")
