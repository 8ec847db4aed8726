"""Ambulance calls are predicted with a Poisson loss that takes their rates for logarithms.

The network ends in softplus, so that it gives a rate, and is trained with nn.PoissonNLLLoss().
The person did not know that log_input=True is its default: the loss treats the rate as its
logarithm, falls nicely, and the network learns log(rate), which is then read as calls per hour.
The place is the loss.
"""

import math

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "wrong_loss"
ACCEPT = ("output_activation_range",)
PLACE = ("loss",)
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

DISTRICTS = 30


def calls(weeks: int, offset: int):
    """One row per district and hour: place, hour, weekday, weather, an event or none."""
    city = np.random.default_rng(310 + seed)
    size = city.gamma(3.0, 0.9, DISTRICTS)
    nightlife = city.uniform(0, 1, DISTRICTS)
    r = np.random.default_rng(311 + 7 * seed + offset)
    n = weeks * 7 * DISTRICTS * 4
    district, hour, day = r.integers(0, DISTRICTS, n), r.integers(0, 24, n), r.integers(0, 7, n)
    temperature, event = r.normal(12, 8, n), r.random(n) < 0.08
    weekend_night = ((day >= 4) & ((hour >= 21) | (hour < 4))).astype(float)
    rate = size[district] * (1.6 + 1.1 * np.sin((hour - 8) / 24 * 2 * math.pi))
    rate = rate * (1 + 1.2 * nightlife[district] * weekend_night)
    rate = rate * (1 + 0.015 * np.abs(temperature - 14)) * np.where(event, 1.8, 1.0)
    angle = hour / 24 * 2 * math.pi
    numbers = np.stack(
        [np.sin(angle), np.cos(angle), (temperature - 12) / 8, event - 0.08, weekend_night - 0.12],
        1,
    )
    return (
        torch.tensor(district),
        torch.tensor(day),
        torch.tensor(numbers, dtype=torch.float32),
        torch.tensor(r.poisson(rate), dtype=torch.float32),
    )


class CallRate(nn.Module):
    def __init__(self):
        super().__init__()
        self.district = nn.Embedding(DISTRICTS, 8)
        self.day = nn.Embedding(7, 3)
        self.body = nn.Sequential(nn.Linear(16, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU())
        self.out = nn.Linear(64, 1)

    def forward(self, district, day, numbers):
        joined = torch.cat([self.district(district), self.day(day), numbers], 1)
        return F.softplus(self.out(self.body(joined))).squeeze(1)


class Forecaster:
    def __init__(self, model: nn.Module, lr: float, epochs: int):
        self.model = model
        self.criterion = nn.PoissonNLLLoss(log_input=False) if healthy else nn.PoissonNLLLoss()
        self.optimizer = torch.optim.RMSprop(model.parameters(), lr=lr)
        self.schedule = torch.optim.lr_scheduler.LinearLR(self.optimizer, 1.0, 0.05, epochs)
        self.epochs = epochs

    def run_epoch(self, loader, training: bool):
        self.model.train(training)
        loss_sum, off, n = 0.0, 0.0, 0
        with torch.set_grad_enabled(training):
            for district, day, numbers, count in loader:
                rate = self.model(district, day, numbers)
                loss = self.criterion(rate, count)
                if training:
                    self.optimizer.zero_grad()
                    loss.backward()
                    self.optimizer.step()
                loss_sum += loss.item() * len(count)
                off += (rate - count).abs().sum().item()
                n += len(count)
        return loss_sum / n, off / n

    def fit(self, train_loader, val_loader):
        for epoch in range(1, self.epochs + 1):
            loss, _ = self.run_epoch(train_loader, True)
            val_loss, off = self.run_epoch(val_loader, False)
            self.schedule.step()
            print(f"[{epoch:2d}/{self.epochs}] {loss:.4f} | val {val_loss:.4f}, off by {off:.3f}")


def main():
    train = TensorDataset(*calls(8, 0))
    val = TensorDataset(*calls(2, 1))
    forecaster = Forecaster(CallRate(), lr=1e-3, epochs=15)
    forecaster.fit(DataLoader(train, 128, shuffle=True), DataLoader(val, 512))
    district, day, numbers, count = val.tensors
    with torch.no_grad():
        rate = forecaster.model(district, day, numbers)
    constant = (count - count.median()).abs().mean()
    print(f"sum of the calls {count.sum():.0f}, predicted {rate.sum():.0f}")
    print(f"always the median: off by {constant:.3f}")


if __name__ == "__main__":
    main()
