"""The printed training loss of a bakery's sales forecast falls in stairs, drops at the start of
each epoch, and lies above the validation loss.

What is printed is the mean since the epoch began. It carries the epoch's early, larger losses
with it and starts anew with the next. The steps are of the log, not of the learning.
"""

import numpy as np
import pandas as pd
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = "the loss jumps down at each new epoch: the printed mean starts anew there"
_, seed = arguments(__doc__)


def bakery_days(n, rng):
    day = np.arange(n)
    frame = pd.DataFrame(
        {
            "weekday": day % 7,
            "season": np.sin(2 * np.pi * day / 365),
            "temperature": 12 + 9 * np.sin(2 * np.pi * day / 365 - 0.4) + rng.normal(0, 3, n),
            "rain": rng.exponential(2.0, n) * (rng.random(n) < 0.4),
            "holiday": (rng.random(n) < 0.05).astype(int),
            "offer": rng.integers(0, 3, n),
        }
    )
    by_weekday = np.array([0, -5, -3, 2, 20, 55, 35])[frame["weekday"]]
    sold = 160 + by_weekday * (1 - 0.8 * frame["holiday"]) - 3 * frame["rain"]
    sold -= 0.2 * (frame["temperature"] - 14) ** 2 - 12 * frame["offer"]
    frame["sold"] = sold + rng.normal(0, 10, n)
    return frame


class SalesNet(nn.Module):
    def __init__(self, numbers):
        super().__init__()
        self.weekday = nn.Embedding(7, 4)
        self.body = nn.Sequential(
            nn.Linear(numbers + 4, 32), nn.Tanh(), nn.Linear(32, 16), nn.Tanh(), nn.Linear(16, 1)
        )

    def forward(self, weekday, numbers):
        return self.body(torch.cat([self.weekday(weekday), numbers], 1)).squeeze(1)


def tensors(frame):
    numbers = frame.drop(columns=["weekday", "sold"]).to_numpy()
    return TensorDataset(
        torch.tensor(frame["weekday"].to_numpy()),
        torch.tensor(numbers, dtype=torch.float32),
        torch.tensor(frame["sold"].to_numpy(), dtype=torch.float32),
    )


def main():
    frame = bakery_days(2400, np.random.default_rng(seed)).sample(frac=1, random_state=seed)
    columns = [name for name in frame.columns if name != "weekday"]
    mean, std = frame.iloc[:1920][columns].mean(), frame.iloc[:1920][columns].std()
    frame = frame.astype(dict.fromkeys(columns, float))
    frame[columns] = (frame[columns] - mean) / std
    train_loader = DataLoader(tensors(frame.iloc[:1920]), batch_size=24, shuffle=True)
    val_loader = DataLoader(tensors(frame.iloc[1920:]), batch_size=240)

    model, criterion = SalesNet(len(columns) - 1), nn.MSELoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(1, 9):
        model.train()
        total = 0.0
        for step, (weekday, numbers, sold) in enumerate(train_loader, 1):
            loss = criterion(model(weekday, numbers), sold)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
            if step in (1, 40, 80):
                print(f"epoch {epoch} [{step:2d}/{len(train_loader)}] loss {total / step:.4f}")
        model.eval()
        with torch.no_grad():
            losses = [criterion(model(*row), sold).item() for *row, sold in val_loader]
        print(
            f"epoch {epoch} validation mse {np.mean(losses):.4f}, "
            f"{std['sold'] * np.mean(losses) ** 0.5:.1f} loaves"
        )


main()
