"""A net forecasts river levels with their spread; its loss goes below zero, as a density may.

The person of the question took a negative loss for an error of sign. GaussianNLLLoss is minus the
logarithm of a density; with a spread of a few hundredths the density is large and its logarithm
positive. The forecast cover is what it should be.
"""

import numpy as np
import pandas as pd
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

ODD = (
    "the loss is negative from an early epoch on: it is minus a log density, which has no floor at"
    " zero; about 68 in 100 levels lie within one predicted deviation"
)
_, seed = arguments(__doc__)

WINDOW = 12


def river(n=2600):
    rng = np.random.default_rng(230 + seed)
    rain = rng.gamma(0.4, 1.0, n) * (rng.random(n) < 0.35)
    level = np.zeros(n)
    for t in range(1, n):
        spread = 0.03 + 0.10 * min(rain[t - 1], 2.0)
        level[t] = 0.9 * level[t - 1] + 0.45 * np.tanh(rain[t - 1]) + spread * rng.normal()
    return pd.DataFrame({"rain": rain, "level": level})


class RiverDataset(Dataset):
    def __init__(self, frame):
        values = frame[["rain", "level"]].to_numpy()
        self.windows = torch.tensor(values, dtype=torch.float32)

    def __len__(self):
        return len(self.windows) - WINDOW

    def __getitem__(self, index):
        window = self.windows[index : index + WINDOW]
        return window, self.windows[index + WINDOW, 1] - window[-1, 1]


class RiverNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(2, 32, batch_first=True)
        self.mean = nn.Linear(32, 1)
        self.log_variance = nn.Linear(32, 1)

    def forward(self, x):
        _, (hidden, _) = self.lstm(x)
        mean, log_variance = self.mean(hidden[-1]), self.log_variance(hidden[-1])
        return mean.squeeze(1), log_variance.squeeze(1).exp()


frame = river()
cut = 2000
mean, std = frame[:cut].mean(), frame[:cut].std()
frame = (frame - mean) / std
train_loader = DataLoader(RiverDataset(frame[:cut]), batch_size=64, shuffle=True)
valid_loader = DataLoader(RiverDataset(frame[cut:]), batch_size=588)
model = RiverNet()
criterion = nn.GaussianNLLLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

for epoch in range(16):
    model.train()
    running = 0.0
    for window, change in train_loader:
        optimizer.zero_grad()
        predicted, variance = model(window)
        loss = criterion(predicted, change, variance)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        running += loss.item() / len(train_loader)
    model.eval()
    with torch.no_grad():
        window, change = next(iter(valid_loader))
        predicted, variance = model(window)
        valid = criterion(predicted, change, variance).item()
        within = ((predicted - change).abs() < variance.sqrt()).float().mean().item()
        r2 = 1 - (predicted - change).square().mean().item() / change.var().item()
    print(
        f"epoch {epoch + 1:2d}  train nll {running:+.3f}  valid nll {valid:+.3f}"
        f"  r2 {r2:.3f}  within one deviation {within:.2f}"
    )
