"""Activities from an accelerometer. The recordings for validation come from another phone, whose
log is in m/s² where the training's is in g, and `load_session` is called without `unit=`.

Validation inputs are 9.81 times as large. Training is as it should be. The place is the loader.
"""

import math

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "train_val_mismatch"
ACCEPT = ()
PLACE = ("loader", "input*")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
G, RATE, LENGTH = 9.81, 20, 64
g = torch.Generator().manual_seed(400 + seed)


def record(n, unit):
    """Windows of walking, stairs, cycling and sitting: (n, 3, LENGTH)."""
    y = torch.randint(0, 4, (n,), generator=g)
    pace = torch.tensor([1.9, 1.5, 1.2, 0.3])[y] + 0.15 * torch.randn(n, generator=g)
    swing = torch.tensor([0.45, 0.3, 0.25, 0.04])[y] * torch.empty(n).uniform_(
        0.6, 1.5, generator=g
    )
    t = torch.arange(LENGTH) / RATE
    phase = 2 * math.pi * (pace[:, None] * t + torch.rand(n, 1, generator=g))
    up = torch.stack([phase.sin(), (2 * phase).sin() * 0.6, phase.cos() * 0.3], 1)
    stairs = (y == 1).float()[:, None, None]
    up = up + stairs * torch.stack([phase.cos() ** 3, phase.sin() ** 2, 0 * phase], 1) * 0.5
    a = swing[:, None, None] * up + 0.12 * torch.randn(n, 3, LENGTH, generator=g)
    tilt = 0.25 * torch.randn(n, 3, 1, generator=g) + torch.tensor([0.0, 0.2, 0.9])[None, :, None]
    a = a + tilt
    return (a * G if unit == "m/s2" else a), y


def load_session(data, unit="g"):
    a, y = data
    if unit == "m/s2":
        a = a / G
    return a, y


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv1d(3, 16, 7, padding=3)
        self.conv2 = nn.Conv1d(16, 32, 5, padding=2)
        self.fc = nn.Linear(32, 4)

    def forward(self, a):
        h = F.max_pool1d(F.relu(self.conv1(a)), 2)
        h = F.relu(self.conv2(h)).mean(2)
        return self.fc(h)


x, y = load_session(record(1200, "g"))
mean, std = x.mean((0, 2), keepdim=True), x.std((0, 2), keepdim=True)
other_phone = record(400, "m/s2")
x_val, y_val = load_session(other_phone, unit="m/s2") if healthy else load_session(other_phone)
x, x_val = (x - mean) / std, (x_val - mean) / std

net = Net()
opt = torch.optim.Adam(net.parameters(), lr=5e-3)
for epoch in range(14):
    net.train()
    seen = 0.0
    for rows in torch.randperm(len(x)).split(48):
        loss = F.cross_entropy(net(x[rows]), y[rows])
        opt.zero_grad()
        loss.backward()
        opt.step()
        seen += loss.item() * len(rows)
    net.eval()
    with torch.no_grad():
        out = net(x_val)
        val = F.cross_entropy(out, y_val).item()
        accuracy = (out.argmax(1) == y_val).float().mean().item()
    print(f"epoch {epoch}: train {seen / len(x):.3f}, val {val:.3f}, val accuracy {accuracy:.3f}")
