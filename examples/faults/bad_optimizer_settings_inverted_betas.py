"""Arm pose network whose Adam has its decay rates in the wrong order, betas=(0.999, 0.9).

The person wrote the betas in a config file in the order in which another library lists them. The
mean of the gradients then reaches back over a thousand steps while their size is forgotten after
ten: the weights swing to and fro around the minimum. The place is the optimizer.
"""

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "bad_optimizer_settings"
ACCEPT = ("learning_rate_too_high",)
PLACE = ("optimizer",)
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

CONFIG = {
    "optimizer": {"name": "Adam", "lr": 2e-3, "betas": [0.9, 0.999] if healthy else [0.999, 0.9]},
    "batch_size": 64,
    "epochs": 16,
    "hidden": [96, 96],
    "dropout": 0.0,
}
LIMBS = np.array([0.9, 0.7, 0.5, 0.3])


def arm_pictures(count, rng):
    """Where the four joints of an arm lie in a camera picture, and the angles wanted from it."""
    angles = rng.uniform(-1.1, 1.1, (count, 4))
    turned = angles.cumsum(1)
    x = (LIMBS * np.cos(turned)).cumsum(1)
    y = (LIMBS * np.sin(turned)).cumsum(1)
    depth = rng.uniform(2.5, 4.0, (count, 1))
    seen = np.concatenate([x / depth, y / depth, 1 / depth], 1)
    seen += rng.normal(0, 0.003, seen.shape)
    return seen.astype(np.float32), angles.astype(np.float32)


def build_network(inputs, outputs):
    layers, width = [], inputs
    for hidden in CONFIG["hidden"]:
        layers += [nn.Linear(width, hidden), nn.GELU()]
        width = hidden
    return nn.Sequential(*layers, nn.Linear(width, outputs))


def build_optimizer(parameters, settings):
    kind = getattr(torch.optim, settings["name"])
    return kind(parameters, lr=settings["lr"], betas=tuple(settings["betas"]))


def minibatches(x, y):
    for index in torch.randperm(len(x)).split(CONFIG["batch_size"]):
        yield x[index], y[index]


def main():
    rng = np.random.default_rng(seed)
    seen, angles = arm_pictures(4000, rng)
    seen_val, angles_val = arm_pictures(1000, rng)
    mean, std = seen.mean(0), seen.std(0)
    x, x_val = (torch.from_numpy((part - mean) / std) for part in (seen, seen_val))
    y, y_val = torch.from_numpy(angles), torch.from_numpy(angles_val)

    network = build_network(x.shape[1], y.shape[1])
    optimizer = build_optimizer(network.parameters(), CONFIG["optimizer"])
    criterion = nn.SmoothL1Loss(beta=0.2)
    for epoch in range(CONFIG["epochs"]):
        network.train()
        losses = []
        for batch_x, batch_y in minibatches(x, y):
            loss = criterion(network(batch_x), batch_y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        network.eval()
        with torch.no_grad():
            off = torch.rad2deg((network(x_val) - y_val).abs().mean())
        if epoch % 3 == 0:
            print(f"epoch {epoch:2d} loss {np.mean(losses):.4f} off by {off:.1f} degrees")
    print(f"end: off by {off:.1f} degrees; always zero would be off by 31.5")


main()
