"""A small convolutional net on digits with SGD; a sweep's settings are unpacked by position.

Fault: the configuration's 0.999 (the decay of averaged weights) lands in SGD's momentum, so that a
step is the sum of a thousand. The place is the optimizer. The loss falls, then swings.
"""

import torch
from data import arguments, batches, images
from torch import nn
from torch.nn import functional as F

KIND = "bad_optimizer_settings"
ACCEPT = ("learning_rate_too_high",)
PLACE = ("optimizer",)
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
settings = {"lr": 0.1, "momentum": 0.9, "ema": 0.999}


def make_optimizer(parameters, lr, momentum, nesterov=True):
    return torch.optim.SGD(parameters, lr, momentum, nesterov=nesterov)


def build():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Linear(128, 10),
    )


x, y, x_val, y_val = images(seed)
net = build()
if healthy:
    optimizer = make_optimizer(net.parameters(), settings["lr"], settings["momentum"])
else:
    optimizer = make_optimizer(net.parameters(), settings["lr"], settings["ema"])

for step, (xb, yb) in enumerate(batches(x, y, size=64, steps=250, seed=seed), 1):
    loss = F.cross_entropy(net(xb), yb)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        net.eval()
        with torch.no_grad():
            accuracy = (net(x_val).argmax(1) == y_val).float().mean().item()
        net.train()
        print(f"step {step}: loss {loss.item():.4f}, validation accuracy {accuracy:.3f}")
print(f"loss {loss.item():.4f} | validation accuracy {accuracy:.3f}")
