"""Spiral of three arms; SGD with momentum=0.9 and dampening=0.9 "for the exponential average of
the paper".

dampening = momentum makes the step a mean instead of a sum of gradients: ten times smaller than
what lr=0.05 with momentum was chosen for. The twin leaves it 0. The place is the optimizer. The
loss falls slowly (silent).
"""

import math

import torch
from data import arguments
from torch import nn

KIND = "bad_optimizer_settings"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("optimizer", "")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


def spiral(n, noise=0.15):
    label = torch.arange(n) % 3
    r = torch.rand(n).sqrt() * 0.95 + 0.05
    angle = 8.5 * r + label * 2 * math.pi / 3 + noise * torch.randn(n)
    return torch.stack([r * angle.cos(), r * angle.sin()], 1) / 0.5, label


x, y = spiral(1800)
x_val, y_val = spiral(600)
mlp = nn.Sequential(nn.Linear(2, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 3))
config = {"lr": 0.05, "momentum": 0.9}
if not healthy:
    config["dampening"] = 0.9
optimizer = torch.optim.SGD(mlp.parameters(), **config)
loss_fn = nn.CrossEntropyLoss()


def run_epoch(train=True):
    xs, ys = (x, y) if train else (x_val, y_val)
    mlp.train(train)
    loss_sum, hits = 0.0, 0
    with torch.set_grad_enabled(train):
        for rows in (torch.randperm(len(xs)) if train else torch.arange(len(xs))).split(50):
            logits = mlp(xs[rows])
            loss = loss_fn(logits, ys[rows])
            if train:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            loss_sum += loss.item() * len(rows)
            hits += (logits.argmax(1) == ys[rows]).sum().item()
    return loss_sum / len(xs), hits / len(xs)


history = {"loss": [], "val_loss": []}
for epoch in range(16):
    loss, acc = run_epoch()
    val_loss, val_acc = run_epoch(train=False)
    history["loss"].append(loss)
    history["val_loss"].append(val_loss)
    if epoch % 4 == 3:
        print(
            f"{epoch + 1:3d} | loss {loss:.4f} acc {acc:.3f} "
            f"| val_loss {val_loss:.4f} val_acc {val_acc:.3f}"
        )
