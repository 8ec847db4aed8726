"""Forecasts wind directions with the squared difference of angles, as if they did not wrap.

The net gives a vector whose angle is the forecast, and nn.MSELoss compares it with the measured
angle between minus pi and pi. North winds lie on both ends of that range, and for them the
forecast is pulled to the south. The place is the loss, in the helper direction_loss.
"""

import math

import torch
from data import arguments, standardise
from torch import nn

KIND = "wrong_loss"
ACCEPT = ()
PLACE = ("loss",)
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

STATIONS = 8


def weather(count):
    """Pressures at stations around the field; the wind follows their slope, turned by friction."""
    place = torch.arange(STATIONS) * 2 * math.pi / STATIONS
    toward = math.pi + 0.9 * torch.randn(count, 1)
    toward = torch.where(torch.rand(count, 1) < 0.35, toward - math.pi, toward)
    slope = 1.0 + torch.rand(count, 1)
    pressure = slope * torch.cos(place - toward) + 0.15 * torch.randn(count, STATIONS)
    daylight, roughness = torch.rand(count, 1), torch.rand(count, 1)
    turned = toward - 0.3 - 0.5 * roughness * (1 - daylight)
    measured = turned.squeeze(1) + 0.06 * torch.randn(count)
    angle = torch.atan2(measured.sin(), measured.cos())
    return torch.cat([pressure, daylight, roughness], dim=1), angle


class WindNet(nn.Module):
    def __init__(self, inputs):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(inputs, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh(), nn.Linear(48, 2)
        )

    def forward(self, x):
        east, north = self.net(x).unbind(-1)
        return torch.atan2(north, east)


def direction_loss(forecast, measured):
    if healthy:
        return (1 - torch.cos(forecast - measured)).mean()
    return nn.functional.mse_loss(forecast, measured)


def degrees_off(forecast, measured):
    gap = (forecast - measured + math.pi) % (2 * math.pi) - math.pi
    return gap.abs() * 180 / math.pi


def main():
    x, angle = weather(3600)
    x, x_val = standardise(x[:3000], x[3000:])
    angle, angle_val = angle[:3000], angle[3000:]
    model = WindNet(x.size(1))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    epochs = 20
    decay = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 1 - epoch / epochs)
    for epoch in range(epochs):
        model.train()
        total = 0.0
        for rows in torch.randperm(len(x)).split(75):
            loss = direction_loss(model(x[rows]), angle[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows)
        decay.step()
        model.eval()
        with torch.no_grad():
            off = degrees_off(model(x_val), angle_val)
        if epoch % 4 == 3:
            edge = off[angle_val.abs() > 2.6]
            print(
                f"epoch {epoch + 1:2d} loss {total / len(x):.4f} mean error {off.mean():.1f} deg, "
                f"near the seam {edge.mean():.1f} deg, worst tenth over {off.quantile(0.9):.1f} deg"
            )


main()
