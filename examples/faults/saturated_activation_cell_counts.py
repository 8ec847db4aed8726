"""Tells blood cells by their optical counts, with tanh units that sit at -1 and 1 from the start.

The counts are put in as they come from the device, in the hundreds; "tanh squashes them anyway",
said a comment in the code this was made from. So it does: the first layer gives nothing but -1 and
1, and its weights get no gradient. The place is the first layer.
The twin brings the counts to mean 0 and deviation 1 first.
"""

import torch
from data import arguments, standardise
from torch import nn

KIND = "saturated_activation"
ACCEPT = ("input_not_normalized", "vanishing_gradient")
PLACE = ("embed.0", "embed.1", "embed", "input*")
SILENT = True
EXACT = False
EARLY = True

SETTINGS = {"channels": 12, "cells": 6, "lr": 2e-3, "epochs": 15, "batch": 64}


def cytometer(n, g, centres):
    kind = torch.randint(0, SETTINGS["cells"], (n,), generator=g)
    angle = torch.rand(n, 1, generator=g) * 6.283
    ring = torch.cat([angle.sin(), angle.cos()], 1).repeat(1, SETTINGS["channels"] // 2)
    light = centres[kind] * (1 + 0.12 * torch.randn(n, 1, generator=g)) + 60 * ring
    return light + 40 * torch.randn(n, SETTINGS["channels"], generator=g), kind


class CellNet(nn.Module):
    def __init__(self, channels, cells):
        super().__init__()
        self.embed = nn.Sequential(nn.Linear(channels, 48), nn.Tanh(), nn.Linear(48, 24), nn.Tanh())
        self.head = nn.Linear(24, cells)

    def forward(self, x):
        return self.head(self.embed(x))


def main():
    healthy, seed = arguments(__doc__)
    g = torch.Generator().manual_seed(500 + seed)
    centres = 400 + 70 * torch.randn(SETTINGS["cells"], SETTINGS["channels"], generator=g)
    x, y = cytometer(2000, g, centres)
    x_val, y_val = cytometer(600, g, centres)
    if healthy:
        x, x_val = standardise(x, x_val)
    net = CellNet(SETTINGS["channels"], SETTINGS["cells"])
    optimizer = torch.optim.Adam(net.parameters(), lr=SETTINGS["lr"])
    ce = nn.CrossEntropyLoss()
    for epoch in range(SETTINGS["epochs"]):
        order = torch.randperm(len(x)).split(SETTINGS["batch"])
        mean = 0.0
        for rows in order:
            optimizer.zero_grad()
            loss = ce(net(x[rows]), y[rows])
            loss.backward()
            optimizer.step()
            mean += loss.item() / len(order)
        if epoch % 3 == 2:
            with torch.no_grad():
                share = (net(x_val).argmax(1) == y_val).float().mean()
            print(f"epoch {epoch + 1}: {mean:.3f}, {share:.1%} of held-out cells right")


main()
