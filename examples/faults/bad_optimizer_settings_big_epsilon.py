"""Predicts the load of a power line from two days of history; Adam runs with an epsilon of 1.

eps=1.0 comes from a remark in a documentation about an image network. With gradients of a few
hundredths the denominator is the epsilon alone, each step is tiny, and after all epochs the error
is two to three times what it could be and still falls. The place is the optimizer.
"""

import math

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "bad_optimizer_settings"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("optimizer", "learning_rate")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

HISTORY, AHEAD = 48, 6
adam_options = {"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-8 if healthy else 1.0}


def power_load(hours):
    t = torch.arange(hours).float()
    day = torch.sin(2 * math.pi * t / 24) + 0.5 * torch.sin(4 * math.pi * t / 24 + 1)
    week = 0.4 * ((t // 24) % 7 >= 5).float()
    weather = torch.zeros(hours)
    for hour in range(1, hours):
        weather[hour] = 0.97 * weather[hour - 1] + 0.12 * torch.randn(())
    return 50 + 8 * day * (1 - week) + 5 * weather + 0.8 * torch.randn(hours)


class Windows(Dataset):
    def __init__(self, series):
        self.series = series

    def __len__(self):
        return len(self.series) - HISTORY - AHEAD + 1

    def __getitem__(self, start):
        middle = start + HISTORY
        return self.series[start:middle], self.series[middle : middle + AHEAD]


class Forecaster(nn.Module):
    def __init__(self, width=32, patch=6):
        super().__init__()
        self.patch = patch
        self.into = nn.Linear(patch, width)
        self.position = nn.Parameter(0.02 * torch.randn(HISTORY // patch, width))
        self.mixer = nn.TransformerEncoderLayer(
            width, 4, 64, dropout=0.0, batch_first=True, norm_first=True
        )
        self.norm = nn.LayerNorm(width)
        self.out = nn.Linear(width * HISTORY // patch, AHEAD)

    def forward(self, series):
        patches = series.view(len(series), -1, self.patch)
        tokens = self.mixer(self.into(patches) + self.position)
        return self.out(self.norm(tokens).flatten(1))


def evaluate(model, loader, criterion):
    model.eval()
    with torch.no_grad():
        losses = [criterion(model(x), y).item() for x, y in loader]
    return sum(losses) / len(losses)


def main():
    series = power_load(3000)
    cut = 2400
    mean, std = series[:cut].mean(), series[:cut].std()
    series = (series - mean) / std
    train = DataLoader(Windows(series[:cut]), batch_size=64, shuffle=True, drop_last=True)
    val = DataLoader(Windows(series[cut:]), batch_size=64)

    model = Forecaster()
    criterion = nn.SmoothL1Loss()
    optimizer = torch.optim.Adam(model.parameters(), **adam_options)
    for epoch in range(10):
        model.train()
        running = 0.0
        for x, y in train:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            running += loss.item()
        print(
            f"Epoch {epoch + 1}/10  train loss: {running / len(train):.4f}  "
            f"val loss: {evaluate(model, val, criterion):.4f}",
            flush=True,
        )


main()
