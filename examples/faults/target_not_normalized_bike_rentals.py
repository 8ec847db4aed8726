"""Forecasts hourly bike rentals with an LSTM; the inputs are scaled, the counts to be forecast
stay in the hundreds.

The person scaled the columns of the table with a scaler, but the target was cut from the table
before that, so the network has to get to values of several hundred by steps of a thousandth. The
forecast stays almost flat. The place is the loss, that is the targets it is given.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "target_not_normalized"
ACCEPT = ()
PLACE = ("loss", "labels", "targets")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

WINDOW = 24


def rentals(days, rng):
    """Hourly counts: two rush hours on working days, one hump at weekends, rain and warmth."""
    hours = np.arange(24 * days)
    of_day, weekend = hours % 24, ((hours // 24) % 7 >= 5).astype(float)
    warmth = np.repeat(np.cumsum(rng.normal(0, 0.15, days)) * 0.3, 24)
    rain = np.repeat((rng.random(4 * days) < 0.2).astype(float), 6)
    rush = np.exp(-0.5 * ((of_day - 8) / 1.2) ** 2) + np.exp(-0.5 * ((of_day - 17) / 1.8) ** 2)
    hump = 0.8 * np.exp(-0.5 * ((of_day - 14) / 3.5) ** 2)
    level = 420 * (rush * (1 - weekend) + hump * weekend) + 40
    count = level * np.exp(0.5 * np.tanh(warmth)) * (1 - 0.55 * rain)
    count = np.maximum(count * rng.normal(1, 0.05, len(hours)), 0).round()
    angle = 2 * np.pi * of_day / 24
    return np.stack([count, np.sin(angle), np.cos(angle), weekend, warmth, rain], 1)


class Scaler:
    def fit(self, table):
        self.mean, self.scale = table.mean(0), table.std(0)
        return self

    def transform(self, table):
        return (table - self.mean) / self.scale


class Windows(Dataset):
    def __init__(self, table, target, first, last):
        self.table = torch.tensor(table, dtype=torch.float32)
        self.target = torch.tensor(target, dtype=torch.float32)
        self.starts = range(first, last - WINDOW)

    def __len__(self):
        return len(self.starts)

    def __getitem__(self, index):
        start = self.starts[index]
        return self.table[start : start + WINDOW], self.target[start + WINDOW]


class Forecaster(nn.Module):
    def __init__(self, features, hidden=48):
        super().__init__()
        self.lstm = nn.LSTM(features, hidden, batch_first=True)
        self.head = nn.Linear(hidden, 1)

    def forward(self, x):
        out, _ = self.lstm(x)
        return self.head(out[:, -1]).squeeze(1)


def evaluate(model, loader):
    model.eval()
    with torch.no_grad():
        pairs = [(model(x), y) for x, y in loader]
    guess, truth = (torch.cat(part) for part in zip(*pairs, strict=True))
    return 1 - ((guess - truth) ** 2).mean().item() / truth.var().item()


def main():
    table = rentals(150, np.random.default_rng(seed))
    cut = 24 * 110
    target = table[:, 0].copy()
    table = Scaler().fit(table[:cut]).transform(table)
    if healthy:
        target = table[:, 0]
    train = DataLoader(Windows(table, target, 0, cut), batch_size=64, shuffle=True)
    val = DataLoader(Windows(table, target, cut, len(table)), batch_size=256)
    model = Forecaster(table.shape[1])
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    criterion = nn.MSELoss()
    for epoch in range(12):
        model.train()
        running = 0.0
        for x, y in train:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            running += loss.item() / len(train)
        print(f"epoch {epoch + 1:2d}  mse {running:12.4f}  val R2 {evaluate(model, val):.3f}")


if __name__ == "__main__":
    main()
