"""A highway network starts its gates at bias -12 "so that it carries everything at first" (-2 is
usual).

sigmoid(-12) is 6e-6, and so is its slope: neither the gates nor the layers behind them get a
gradient to speak of, and the network stays the linear map of its first and last layer. The place is
the gates.
"""

import math

import torch
from data import arguments
from torch import nn

KIND = "saturated_activation"
ACCEPT = ("vanishing_gradient", "poor_weight_init")
PLACE = ("*gate*", "blocks*", "")
SILENT = True
EXACT = False
EARLY = True

CONFIG = {"width": 32, "blocks": 3, "carry_bias": -12.0, "lr": 0.1, "steps": 500, "batch": 100}


class Highway(nn.Module):
    def __init__(self, width, carry_bias):
        super().__init__()
        self.plain = nn.Linear(width, width)
        self.gate = nn.Linear(width, width)
        self.sigmoid_gate = nn.Sigmoid()
        nn.init.constant_(self.gate.bias, carry_bias)

    def forward(self, x):
        open_ = self.sigmoid_gate(self.gate(x))
        return open_ * torch.relu(self.plain(x)) + (1 - open_) * x


class Net(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.stem = nn.Linear(2, config["width"])
        self.blocks = nn.Sequential(
            *(Highway(config["width"], config["carry_bias"]) for _ in range(config["blocks"]))
        )
        self.head = nn.Linear(config["width"], 3)

    def forward(self, x):
        return self.head(self.blocks(self.stem(x)))


def rings(n):
    label = torch.randint(3, (n,))
    radius = 0.5 + 0.9 * label + 0.13 * torch.randn(n)
    angle = 2 * math.pi * torch.rand(n)
    xy = torch.stack([radius * angle.cos(), radius * angle.sin()], 1)
    return xy / xy.std(), label


def run(config):
    x, y = rings(3000)
    x_test, y_test = rings(800)
    net = Net(config)
    sgd = torch.optim.SGD(net.parameters(), lr=config["lr"], momentum=0.9)
    plan = torch.optim.lr_scheduler.CosineAnnealingLR(sgd, config["steps"])
    for step in range(1, config["steps"] + 1):
        rows = torch.randint(len(x), (config["batch"],))
        loss = nn.functional.cross_entropy(net(x[rows]), y[rows])
        sgd.zero_grad()
        loss.backward()
        sgd.step()
        plan.step()
        if step % 100 == 0:
            with torch.no_grad():
                right = (net(x_test).argmax(1) == y_test).float().mean().item()
            print(f"step {step}  loss {loss.item():.3f}  test accuracy {right:.3f}")


healthy, _ = arguments(__doc__)
if healthy:
    CONFIG["carry_bias"] = -2.0
run(CONFIG)
