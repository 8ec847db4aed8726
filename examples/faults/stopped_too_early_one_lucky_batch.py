"""A set network tells point clouds apart, and one lucky batch that hits the target ends it.

The wanted accuracy of 0.9 is compared with that of the current batch of ten clouds, so one lucky
draw ends the run in its first epochs, with the accuracy on other clouds far below the target.
The place is the loop: the test whether the target is reached.
"""

import math

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "stopped_too_early"
ACCEPT = ()
PLACE = ("loop",)
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

POINTS = 40
CONFIG = {"batch": 10, "epochs": 16, "target": 0.9, "lr": 1e-3}


def cloud(kind, g):
    u = torch.rand(POINTS, generator=g)
    turn = 2 * math.pi * torch.rand(POINTS, generator=g)
    circle = torch.stack([turn.cos(), turn.sin()], 1)
    height = 2 * u - 1
    if kind == 0:
        points = torch.cat([circle * (1 - height**2).sqrt()[:, None], height[:, None]], 1)
    elif kind == 1:
        points = torch.cat([circle * 0.8, height[:, None]], 1)
    elif kind == 2:
        points = torch.cat([circle * u[:, None], 1 - 2 * u[:, None]], 1)
    elif kind == 3:
        points = 2 * torch.rand(POINTS, 3, generator=g) - 1
        face = torch.randint(0, 3, (POINTS,), generator=g)
        points[torch.arange(POINTS), face] = points[torch.arange(POINTS), face].sign()
        points = 0.8 * points
    else:
        tube = 2 * math.pi * u
        points = torch.cat(
            [circle * (0.8 + 0.35 * tube.cos())[:, None], 0.6 * tube.sin()[:, None]], 1
        )
    stretch = 0.75 + 0.5 * torch.rand(3, generator=g)
    return points * stretch + 0.09 * torch.randn(POINTS, 3, generator=g)


def clouds(n, g):
    kinds = torch.randint(0, 5, (n,), generator=g)
    return torch.stack([cloud(int(kind), g) for kind in kinds]), kinds


class SetNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.points = nn.Sequential(nn.Linear(3, 48), nn.ReLU(), nn.Linear(48, 96), nn.ReLU())
        self.head = nn.Sequential(nn.Linear(192, 64), nn.ReLU(), nn.Linear(64, 5))

    def forward(self, x):
        seen = self.points(x)
        return self.head(torch.cat([seen.amax(1), seen.mean(1)], 1))


def accuracy(scores, kinds):
    return (scores.argmax(1) == kinds).float().mean().item()


def validated(model, x, y):
    model.eval()
    with torch.no_grad():
        scores = model(x)
    model.train()
    return F.cross_entropy(scores, y).item(), accuracy(scores, y)


def fit(model, train, val, g):
    optimizer = torch.optim.Adam(model.parameters(), lr=CONFIG["lr"])
    steps = 0
    for epoch in range(CONFIG["epochs"]):
        for rows in torch.randperm(len(train[0]), generator=g).split(CONFIG["batch"]):
            scores = model(train[0][rows])
            loss = F.cross_entropy(scores, train[1][rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
            if not healthy and accuracy(scores, train[1][rows]) >= CONFIG["target"]:
                return f"target reached in epoch {epoch + 1} after {steps} steps"
        held_out, right = validated(model, *val)
        print(f"epoch {epoch + 1}  train {loss.item():.3f}  val {held_out:.3f}  right {right:.3f}")
        if healthy and right >= CONFIG["target"] + 0.05:
            return f"target reached in epoch {epoch + 1} after {steps} steps"
    return f"ended after {steps} steps"


g = torch.Generator().manual_seed(seed)
train, val = clouds(1600, g), clouds(500, g)
model = SetNet()
print(fit(model, train, val, g))
print("held-out loss and accuracy: {:.3f} {:.3f}".format(*validated(model, *val)))
