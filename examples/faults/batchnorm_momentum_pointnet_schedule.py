"""PointNet on point clouds of machine parts; the batch-norm momentum schedule keeps TensorFlow's
convention.

The port of PointNet's bn-decay schedule hands `1 - decayed` to PyTorch, where momentum is the
share of the NEW batch: it grows from 0.5 to 0.99, so that the running statistics become those of
the last batch alone. The place is the batch norms (bn1, bn2, ...; their momentum), set by the
loop at each epoch.
"""

import math

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "batchnorm_momentum"
ACCEPT = ()
PLACE = ("*bn*", "loop")
SILENT = True
EXACT = True
EARLY = False

healthy, seed = arguments(__doc__)

HP = {
    "points": 48,
    "train": 1204,
    "val": 480,
    "batch": 12,
    "epochs": 8,
    "lr": 1.5e-3,
    "bn_init": 0.5,
    "bn_rate": 0.5,
    "bn_every": 2,
    "bn_clip": 0.01,
}
PARTS = ("bolt", "plate", "ring", "ball", "box", "cone")


def make_cloud(kind: int, n: int, g: torch.Generator) -> torch.Tensor:
    u, v, w = torch.rand(3, n, generator=g)
    a = 2 * math.pi * u
    if kind == 0:  # bolt: shaft and head
        r = torch.where(v > 0.7, 0.8, 0.35)
        p = torch.stack([r * a.cos(), r * a.sin(), 2 * v - 1], 1)
    elif kind == 1:
        p = torch.stack([2 * u - 1, 2 * v - 1, 0.15 * (2 * w - 1)], 1)
    elif kind == 2:
        b = 2 * math.pi * v
        p = torch.stack(
            [(0.8 + 0.25 * b.cos()) * a.cos(), (0.8 + 0.25 * b.cos()) * a.sin(), 0.25 * b.sin()], 1
        )
    elif kind == 3:
        z = 2 * v - 1
        s = (1 - z**2).sqrt()
        p = torch.stack([s * a.cos(), s * a.sin(), z], 1)
    elif kind == 4:
        p = 2 * torch.stack([u, v, w], 1) - 1
        p[torch.arange(n), torch.randint(0, 3, (n,), generator=g)] = (
            torch.randint(0, 2, (n,), generator=g) * 2.0 - 1
        )
        p = 0.75 * p
    else:
        r = 1 - v
        p = torch.stack([r * a.cos(), r * a.sin(), 2 * v - 1], 1)
    stretch = 0.7 + 0.6 * torch.rand(3, generator=g)
    t = 2 * math.pi * torch.rand(1, generator=g).item()
    tilt = 0.6 * torch.randn(1, generator=g).item()
    rz = torch.tensor([[math.cos(t), -math.sin(t), 0], [math.sin(t), math.cos(t), 0], [0, 0, 1]])
    rx = torch.tensor(
        [[1, 0, 0], [0, math.cos(tilt), -math.sin(tilt)], [0, math.sin(tilt), math.cos(tilt)]]
    )
    return (p * stretch) @ rz.T @ rx.T + 0.06 * torch.randn(n, 3, generator=g)


def make_set(n: int, g: torch.Generator):
    y = torch.randint(0, len(PARTS), (n,), generator=g)
    return torch.stack([make_cloud(int(k), HP["points"], g) for k in y]), y


class PointNet(nn.Module):
    def __init__(self, classes: int):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv1d(3, 48, 1), nn.BatchNorm1d(48)
        self.conv2, self.bn2 = nn.Conv1d(48, 96, 1), nn.BatchNorm1d(96)
        self.conv3, self.bn3 = nn.Conv1d(96, 192, 1), nn.BatchNorm1d(192)
        self.fc1, self.bn4 = nn.Linear(192, 96), nn.BatchNorm1d(96)
        self.fc2 = nn.Linear(96, classes)

    def forward(self, x):
        x = x.transpose(1, 2)
        x = F.relu(self.bn1(self.conv1(x)))
        x = F.relu(self.bn2(self.conv2(x)))
        x = self.bn3(self.conv3(x)).amax(2)
        return self.fc2(F.relu(self.bn4(self.fc1(x))))


def bn_momentum(epoch: int) -> float:
    decayed = max(HP["bn_init"] * HP["bn_rate"] ** (epoch // HP["bn_every"]), HP["bn_clip"])
    return decayed if healthy else 1 - decayed


def set_bn_momentum(model: nn.Module, momentum: float) -> None:
    for module in model.modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            module.momentum = momentum


g = torch.Generator().manual_seed(seed)
x_train, y_train = make_set(HP["train"], g)
x_val, y_val = make_set(HP["val"], g)
model = PointNet(len(PARTS))
optimizer = torch.optim.Adam(model.parameters(), lr=HP["lr"])
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.6)

history = []
for epoch in range(HP["epochs"]):
    set_bn_momentum(model, bn_momentum(epoch))
    model.train()
    total = 0.0
    order = torch.randperm(len(x_train), generator=g)
    for rows in order.split(HP["batch"]):
        loss = F.cross_entropy(model(x_train[rows]), y_train[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows)
    scheduler.step()
    model.eval()
    with torch.no_grad():
        logits = torch.cat([model(part) for part in x_val.split(120)])
    val_loss = F.cross_entropy(logits, y_val).item()
    acc = (logits.argmax(1) == y_val).float().mean().item()
    history.append(val_loss)
    print(f"[{epoch}] loss {total / len(x_train):.4f} | val loss {val_loss:.4f} acc {acc:.3f}")
print(f"mean val loss of the last four epochs {sum(history[-4:]) / 4:.4f}, best {min(history):.4f}")
