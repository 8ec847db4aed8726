"""Foretells a wind turbine's power from its sensors, which are fed in their physical units.

Pressure comes in pascals, rotation in turns per minute, the tower's sway in metres. The scaler of
the earlier notebook stayed behind when the training became a script. The place is the input.
The twin standardises every sensor by the training part.
"""

import argparse

import torch
from data import arguments, standardise
from torch import nn

KIND = "input_not_normalized"
ACCEPT = ("saturated_activation",)
PLACE = ("input*", "rnn")
SILENT = False
EXACT = False
EARLY = True


def sensors(n, g, steps=18):
    wind = 8 + torch.cumsum(0.7 * torch.randn(n, steps, generator=g), 1)
    wind = (wind + 2.5 * torch.randn(n, 1, generator=g)).clamp(2, 22)
    pressure = 101_300 + 900 * torch.randn(n, 1, generator=g)
    pressure = pressure + 20 * torch.randn(n, steps, generator=g)
    kelvin = 283 + 8 * torch.randn(n, 1, generator=g) + 0.3 * torch.randn(n, steps, generator=g)
    rotor = 1.4 * wind.clamp(max=12) + 0.4 * torch.randn(n, steps, generator=g)
    sway = 0.01 * wind + 0.01 * torch.randn(n, steps, generator=g)
    air = pressure[:, -1] / (287 * kelvin[:, -1])
    power = (0.5 * air * wind[:, -3:].mean(1) ** 3 / 500).clamp(max=1.6)
    x = torch.stack([pressure, kelvin, wind, rotor, sway], 2)
    return x, power + 0.03 * torch.randn(n, generator=g)


class Turbine(nn.Module):
    def __init__(self, sensors, hidden):
        super().__init__()
        self.rnn = nn.GRU(sensors, hidden, batch_first=True)
        self.power = nn.Linear(hidden, 1)

    def forward(self, x):
        states, _ = self.rnn(x)
        return self.power(states[:, -1]).squeeze(-1)


def run(options, healthy, seed):
    g = torch.Generator().manual_seed(300 + seed)
    x, y = sensors(1600, g)
    x_val, y_val = sensors(400, g)
    if healthy:
        flat, flat_val = standardise(x.flatten(0, 1), x_val.flatten(0, 1))
        x, x_val = flat.view_as(x), flat_val.view_as(x_val)
    model = Turbine(x.shape[2], options.hidden)
    optimizer = torch.optim.Adam(model.parameters(), lr=options.lr)
    huber = nn.HuberLoss(delta=0.5)
    for epoch in range(1, options.epochs + 1):
        mean = 0.0
        for rows in torch.randperm(len(x)).split(options.batch):
            optimizer.zero_grad()
            loss = huber(model(x[rows]), y[rows])
            loss.backward()
            optimizer.step()
            mean += loss.item() * len(rows) / len(x)
        if epoch % 4 == 0:
            with torch.no_grad():
                residual = model(x_val) - y_val
            r2 = 1 - residual.var() / y_val.var()
            print(f"epoch {epoch} loss {mean:.5f} validation R2 {r2.item():.3f}")


if __name__ == "__main__":
    healthy, seed = arguments(__doc__)
    run(argparse.Namespace(hidden=32, lr=3e-3, epochs=20, batch=50), healthy, seed)
