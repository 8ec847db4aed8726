"""Trainer class for an LSTM load forecaster; `self.optimizer.zero_grad` stands there without ().

Nothing is called, the gradients of all batches add up, and the steps grow and swing. The place is
the loop. Exact after a few steps.
"""

import math

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "gradients_not_cleared"
ACCEPT = ()
PLACE = ("loop", "optimizer", "")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


def load_curve(hours):
    t = torch.arange(hours).float()
    day = (2 * math.pi * t / 24).sin() + 0.5 * (4 * math.pi * t / 24 + 0.6).cos()
    week = 0.5 * (2 * math.pi * t / 168).cos()
    weather = torch.zeros(hours)
    for i in range(1, hours):
        weather[i] = 0.97 * weather[i - 1] + 0.12 * torch.randn(())
    return day * (1 + 0.3 * week) + week + weather + 0.1 * torch.randn(hours)


class Windows(Dataset):
    def __init__(self, series, history=24, horizon=3):
        self.series, self.history, self.horizon = series, history, horizon

    def __len__(self):
        return len(self.series) - self.history - self.horizon + 1

    def __getitem__(self, i):
        j = i + self.history
        return self.series[i:j].unsqueeze(1), self.series[j : j + self.horizon]


class Forecaster(nn.Module):
    def __init__(self, hidden=24, horizon=3):
        super().__init__()
        self.lstm = nn.LSTM(1, hidden, batch_first=True)
        self.fc = nn.Linear(hidden, horizon)

    def forward(self, x):
        _, (h, _) = self.lstm(x)
        return self.fc(h[-1])


class Trainer:
    def __init__(self, model, train_loader, val_loader, lr):
        self.model, self.train_loader, self.val_loader = model, train_loader, val_loader
        self.criterion = nn.MSELoss()
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)

    def train_epoch(self):
        self.model.train()
        losses = []
        for x, y in self.train_loader:
            if healthy:
                self.optimizer.zero_grad()
            else:
                self.optimizer.zero_grad  # noqa: B018
            loss = self.criterion(self.model(x), y)
            loss.backward()
            self.optimizer.step()
            losses.append(loss.item())
        return sum(losses) / len(losses)

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        losses = [self.criterion(self.model(x), y).item() for x, y in self.val_loader]
        return sum(losses) / len(losses)

    def fit(self, epochs):
        for epoch in range(epochs):
            train, val = self.train_epoch(), self.validate()
            print(f"Epoch {epoch + 1}/{epochs}  train {train:.4f}  val {val:.4f}")


series = load_curve(24 * 130)
cut = 24 * 100
mean, std = series[:cut].mean(), series[:cut].std()
series = (series - mean) / std
trainer = Trainer(
    Forecaster(),
    DataLoader(Windows(series[:cut]), batch_size=32, shuffle=True),
    DataLoader(Windows(series[cut:]), batch_size=128),
    lr=4e-3,
)
trainer.fit(8)
