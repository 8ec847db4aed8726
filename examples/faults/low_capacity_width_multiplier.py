"""Gestures from an accelerometer by a MobileNet of one dimension, with a width multiplier.

For a first try on the microcontroller the multiplier was set to 0.05: sixteen and thirty-two
channels become one each, and ten gestures have to pass through a single channel. The loss falls
to a plateau (silent). The place is the model. The twin has the width 1.
"""

import argparse

import torch
from data import arguments
from torch import nn

KIND = "low_capacity"
ACCEPT = ()
PLACE = ("features*", "", "classifier*")
SILENT = True
EXACT = False
EARLY = True

GESTURES, LENGTH = 10, 40


def scaled(channels, width):
    return max(1, int(channels * width))


class InvertedResidual(nn.Module):
    def __init__(self, c_in, c_out, stride=1, expand=2):
        super().__init__()
        hidden = c_in * expand
        self.conv = nn.Sequential(
            nn.Conv1d(c_in, hidden, 1, bias=False), nn.BatchNorm1d(hidden), nn.ReLU6(),
            nn.Conv1d(hidden, hidden, 5, stride, 2, groups=hidden, bias=False),
            nn.BatchNorm1d(hidden), nn.ReLU6(),
            nn.Conv1d(hidden, c_out, 1, bias=False), nn.BatchNorm1d(c_out),
        )  # fmt: skip
        self.same = stride == 1 and c_in == c_out

    def forward(self, x):
        return x + self.conv(x) if self.same else self.conv(x)


class GestureNet(nn.Module):
    def __init__(self, width=1.0):
        super().__init__()
        a, b, last = scaled(16, width), scaled(32, width), scaled(64, width)
        self.features = nn.Sequential(
            nn.Conv1d(3, a, 5, 2, 2, bias=False), nn.BatchNorm1d(a), nn.ReLU6(),
            InvertedResidual(a, a), InvertedResidual(a, b, 2), InvertedResidual(b, b),
            nn.Conv1d(b, last, 1, bias=False), nn.BatchNorm1d(last), nn.ReLU6(),
        )  # fmt: skip
        self.classifier = nn.Linear(last, GESTURES)

    def forward(self, x):
        return self.classifier(self.features(x).mean(2))


def gestures(n, g):
    shapes = torch.Generator().manual_seed(5)
    basis = torch.randn(GESTURES, 3, 4, generator=shapes)
    t = torch.linspace(0, 6.28, LENGTH)
    waves = torch.stack([(k * t).sin() for k in (1, 2, 3, 4)])
    y = torch.randint(0, GESTURES, (n,), generator=g)
    x = basis[y] @ waves
    shift = torch.randint(0, 10, (n,), generator=g)
    x = torch.stack([row.roll(int(s), 1) for row, s in zip(x, shift, strict=True)])
    x = x * (0.8 + 0.4 * torch.rand(n, 1, 1, generator=g))
    return x + 0.5 * torch.randn(n, 3, LENGTH, generator=g), y


def main():
    healthy, seed = arguments(__doc__)
    config = argparse.Namespace(width=1.0 if healthy else 0.05, rate=5e-3, epochs=12, batch=50)
    g = torch.Generator().manual_seed(seed)
    x, y = gestures(1500, g)
    x_val, y_val = gestures(500, g)
    model = GestureNet(config.width)
    optimizer = torch.optim.SGD(
        model.parameters(), lr=10 * config.rate, momentum=0.9, weight_decay=1e-4
    )
    steps = config.epochs * len(x) // config.batch
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(config.epochs):
        model.train()
        for rows in torch.randperm(len(x)).split(config.batch):
            loss = criterion(model(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
        model.eval()
        with torch.no_grad():
            accuracy = (model(x_val).argmax(1) == y_val).float().mean().item()
        print(f"epoch {epoch} loss {loss.item():.4f} val accuracy {accuracy:.3f}")


if __name__ == "__main__":
    main()
