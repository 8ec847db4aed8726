"""An LSTM that forecasts rain from 24 hours of a weather station reads raw units: pressure is about
101,325 Pa, wind about 4 m/s.

The scaling of the frame was left out, so pressure drowns all other columns and drives every gate
of the LSTM into its flat part. The forecast stays at how often it rains.
The place is the input.
"""

import numpy as np
import pandas as pd
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "input_not_normalized"
ACCEPT = ("saturated_activation",)
PLACE = ("input", "lstm", "lstm.*")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

COLUMNS = ["temperature", "pressure", "humidity", "wind"]
HOURS = 24


def station(days, rng):
    """One frame of hours; `day` numbers the days, `rain` says whether it rains after them."""
    frames = []
    for day in range(days):
        front = rng.random() < 0.45
        t = np.arange(HOURS)
        drop = (rng.uniform(200, 700) if front else rng.uniform(-300, 150)) * t / HOURS
        damp = 55 + rng.normal(0, 6) + (rng.uniform(5, 22) if front else 0) * (t / HOURS) ** 2
        frames.append(
            pd.DataFrame(
                {
                    "day": day,
                    "temperature": 286 + 5 * np.sin(t / 24 * 6.28 - 2) + rng.normal(0, 3),
                    "pressure": 101325 + rng.normal(0, 500) - drop + rng.normal(0, 60, HOURS),
                    "humidity": damp + rng.normal(0, 3, HOURS),
                    "wind": np.abs(rng.normal(5 if front else 4, 1.5, HOURS)),
                    "rain": int(front) if rng.random() > 0.03 else int(not front),
                }
            )
        )
    return pd.concat(frames, ignore_index=True)


class Days(Dataset):
    def __init__(self, frame):
        groups = [group for _, group in frame.groupby("day")]
        values = np.stack([group[COLUMNS].to_numpy() for group in groups])
        self.x = torch.tensor(values, dtype=torch.float32)
        self.y = torch.tensor([group["rain"].iloc[0] for group in groups], dtype=torch.float32)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


class RainLSTM(nn.Module):
    def __init__(self, hidden=24):
        super().__init__()
        self.lstm = nn.LSTM(len(COLUMNS), hidden, batch_first=True)
        self.fc = nn.Linear(hidden, 1)

    def forward(self, x):
        _, (last, _) = self.lstm(x)
        return self.fc(last[-1]).squeeze(1)


def fit(model, train_loader, val_loader, epochs):
    criterion = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(epochs):
        model.train()
        losses = []
        for x, y in train_loader:
            loss = criterion(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            losses.append(loss.item())
        model.eval()
        with torch.no_grad():
            right = [((model(x) > 0) == (y > 0.5)).float().mean().item() for x, y in val_loader]
        print(f"epoch {epoch + 1}: loss {np.mean(losses):.3f}, val accuracy {np.mean(right):.3f}")


def main():
    frame = station(1500, np.random.default_rng(seed))
    train_rows = frame["day"] < 1200
    if healthy:
        mean, std = frame.loc[train_rows, COLUMNS].mean(), frame.loc[train_rows, COLUMNS].std()
        frame[COLUMNS] = (frame[COLUMNS] - mean) / std
    train_loader = DataLoader(Days(frame[train_rows]), batch_size=32, shuffle=True)
    val_loader = DataLoader(Days(frame[~train_rows]), batch_size=100)
    fit(RainLSTM(), train_loader, val_loader, epochs=8)


main()
