"""A taxi ride net has its own RMSLE as loss and compares a column with a row of durations.

The person wrote the score of the competition as a loss class: log1p of both, difference, square,
mean, root. The output is (batch, 1), the durations (batch,), and the difference becomes a square
table of all pairs; no loss of PyTorch is there to warn. The place is the loss.
"""

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from data import arguments
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "loss_shape_broadcast"
ACCEPT = ()
PLACE = ("loss", "labels")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

FEATURES = ["distance", "hour_sin", "hour_cos", "weekend", "airport", "rain", "passengers"]


def make_rides(n=3000):
    rng = np.random.default_rng(450 + seed)
    hour = rng.integers(0, 24, n)
    frame = pd.DataFrame(
        {
            "distance": rng.gamma(2.0, 1.8, n) + 0.4,
            "hour_sin": np.sin(2 * np.pi * hour / 24),
            "hour_cos": np.cos(2 * np.pi * hour / 24),
            "weekend": (rng.random(n) < 0.28).astype(float),
            "airport": (rng.random(n) < 0.12).astype(float),
            "rain": (rng.random(n) < 0.2).astype(float),
            "passengers": rng.integers(1, 5, n).astype(float),
        }
    )
    frame.loc[frame["airport"] == 1, "distance"] += 9
    rush = np.exp(-((hour - 8.5) ** 2) / 4) + np.exp(-((hour - 17.5) ** 2) / 6)
    pace = 2.6 + 2.2 * rush * (1 - frame["weekend"]) + 0.5 * frame["rain"] - frame["airport"]
    frame["minutes"] = (2 + pace * frame["distance"]) * np.exp(rng.normal(0, 0.15, n))
    return frame


class RideDataset(Dataset):
    def __init__(self, frame, mean, std):
        scaled = (frame[FEATURES] - mean) / std
        self.x = torch.tensor(scaled.to_numpy(), dtype=torch.float32)
        self.y = torch.tensor(frame["minutes"].to_numpy(), dtype=torch.float32)
        if healthy:
            self.y = self.y.unsqueeze(1)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        return self.x[index], self.y[index]


class RMSLELoss(nn.Module):
    def forward(self, pred, actual):
        return torch.sqrt((torch.log1p(pred) - torch.log1p(actual)).square().mean())


class RideNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(len(FEATURES), 64)
        self.fc2 = nn.Linear(64, 32)
        self.fc3 = nn.Linear(32, 1)

    def forward(self, x):
        x = F.relu(self.fc1(x))
        x = F.relu(self.fc2(x))
        return torch.expm1(F.softplus(self.fc3(x)))


def fit(model, loader, valid_set, epochs=14):
    criterion = RMSLELoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 5, gamma=0.4)
    for epoch in range(epochs):
        model.train()
        running = 0.0
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            running += loss.item()
        scheduler.step()
        model.eval()
        with torch.no_grad():
            predicted = model(valid_set.x).flatten()
        actual = valid_set.y.flatten()
        score = (torch.log1p(predicted) - torch.log1p(actual)).square().mean().sqrt().item()
        mae = (predicted - actual).abs().mean().item()
        print(
            f"epoch {epoch + 1:2d}  train RMSLE {running / len(loader):.4f}"
            f"  valid RMSLE {score:.4f}  MAE {mae:.2f} minutes"
        )


frame = make_rides()
train_frame, valid_frame = train_test_split(frame, test_size=0.2, random_state=seed)
mean, std = train_frame[FEATURES].mean(), train_frame[FEATURES].std()
train_set = RideDataset(train_frame, mean, std)
loader = DataLoader(train_set, batch_size=64, shuffle=True, drop_last=True)
fit(RideNet(), loader, RideDataset(valid_frame, mean, std))
