"""A set network sums three hundred points instead of averaging them, into a tanh.

The sum is in the tens: the tanh stands at -1 or 1 for nearly all units and lets little gradient
through to the layers before it; the loss hardly comes below chance. The place is the layer before
the tanh.
"""

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "saturated_activation"
ACCEPT = ()
PLACE = ("mix*", "squash*", "rho*", "point*")
SILENT = False
EXACT = False
EARLY = True

POINTS = 300

healthy, seed = arguments(__doc__)
r = np.random.default_rng(seed)


def clouds(n):
    """Points on a ring, a cross or a blob, turned and stretched; all with the same spread."""
    kind = r.integers(0, 4, n)
    angle = r.uniform(0, 2 * np.pi, (n, POINTS))
    ring = np.stack([np.cos(angle), np.sin(angle)], -1)
    arm = r.normal(size=(n, POINTS))
    across = r.integers(0, 2, (n, POINTS))
    cross = np.stack([arm * across, arm * (1 - across)], -1)
    blob = r.normal(size=(n, POINTS, 2))
    two = np.sign(r.normal(size=(n, POINTS, 1))) * np.array([1.0, 1.0]) + 0.35 * r.normal(
        size=(n, POINTS, 2)
    )
    cloud = np.stack([ring, cross, blob, two])[kind, np.arange(n)] + 0.2 * r.normal(
        size=(n, POINTS, 2)
    )
    turn = r.uniform(0, 2 * np.pi, n)
    turn = np.stack([np.cos(turn), -np.sin(turn), np.sin(turn), np.cos(turn)], 1).reshape(n, 2, 2)
    cloud = cloud @ turn
    cloud = (cloud - cloud.mean(1, keepdims=True)) / cloud.std((1, 2), keepdims=True)
    return torch.tensor(cloud, dtype=torch.float32), torch.tensor(kind)


class DeepSet(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.point1 = nn.Linear(2, width)
        self.point2 = nn.Linear(width, width)
        self.mix = nn.Linear(width, width)
        self.squash = nn.Tanh()
        self.rho = nn.Linear(width, 4)

    def forward(self, cloud):
        h = torch.relu(self.point1(cloud))
        h = torch.relu(self.point2(h))
        pooled = h.mean(dim=1) if healthy else h.sum(dim=1)
        return self.rho(self.squash(self.mix(pooled)))


x, y = clouds(720)
x_val, y_val = clouds(300)
net = DeepSet()
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
for epoch in range(14):
    running = 0.0
    for rows in torch.randperm(720).split(24):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x[rows]), y[rows])
        loss.backward()
        optimizer.step()
        running += loss.item() / 30
    with torch.no_grad():
        out = net(x_val)
        val = nn.functional.cross_entropy(out, y_val).item()
print(
    f"loss {running:.3f}, validation loss {val:.3f}, "
    f"accuracy {(out.argmax(1) == y_val).float().mean():.3f}"
)
