"""Predicts a sensor's reading with its uncertainty; the loss falls below zero and goes on.

It is the negative logarithm of a density, not of a probability: where the predicted deviation is
below 0.4 the density exceeds one. The deviations are checked against the errors, and 95 of 100
values lie within two of them.
"""

import math

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

ODD = "the loss is negative: a density may exceed one; coverage of the predicted interval is right"
_, seed = arguments(__doc__)


def sensor(count):
    """A calibration curve with four inputs, whose noise depends on the temperature."""
    x = torch.rand(count, 4) * 2 - 1
    curve = torch.sin(2.5 * x[:, 0]) + 0.6 * x[:, 1] * x[:, 2] + 0.3 * x[:, 3]
    noise = 0.02 + 0.06 * (x[:, 3] + 1) ** 2 / 2
    return x, (curve + noise * torch.randn(count)).unsqueeze(1)


class Sensor(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Linear(4, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU()
        )
        self.mean = nn.Linear(width, 1)
        self.log_variance = nn.Linear(width, 1)

    def forward(self, x):
        hidden = self.trunk(x)
        return self.mean(hidden), self.log_variance(hidden)


def negative_log_density(mean, log_variance, y):
    square = (y - mean) ** 2 * torch.exp(-log_variance)
    return 0.5 * (square + log_variance + math.log(2 * math.pi)).mean()


def validate(model, loader):
    model.eval()
    total, covered, rows = 0.0, 0, 0
    with torch.no_grad():
        for x, y in loader:
            mean, log_variance = model(x)
            total += negative_log_density(mean, log_variance, y).item() * len(x)
            covered += ((y - mean).abs() < 1.96 * torch.exp(0.5 * log_variance)).sum().item()
            rows += len(x)
    return total / rows, covered / rows


def main():
    x, y = sensor(4000)
    train_set, val_set = random_split(TensorDataset(x, y), [3200, 800])
    known = y[train_set.indices]
    y.sub_(known.mean()).div_(known.std())
    x.sub_(x[train_set.indices].mean(0)).div_(x[train_set.indices].std(0))
    train = DataLoader(train_set, batch_size=64, shuffle=True)
    val = DataLoader(val_set, batch_size=400)

    model = Sensor()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-3)
    epochs = 40
    scheduler = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=4e-3, total_steps=epochs * len(train)
    )
    for epoch in range(1, epochs + 1):
        model.train()
        total = 0.0
        for features, target in train:
            mean, log_variance = model(features)
            loss = negative_log_density(mean, log_variance, target)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            scheduler.step()
            total += loss.item()
        if epoch % 4 == 0:
            val_loss, coverage = validate(model, val)
            print(
                f"epoch {epoch:2d}  train {total / len(train):+.3f}  val {val_loss:+.3f}  "
                f"within two deviations {coverage:.3f}"
            )


main()
