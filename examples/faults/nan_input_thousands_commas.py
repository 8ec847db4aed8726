"""A flat price net turns text such as "1,240" into numbers, which gives missing values.

The person got a column of text from the export ("985", "1,240") and used `pd.to_numeric` with
errors="coerce", since a few cells were really broken and dropped before. All areas of a thousand
square feet and more become NaN and go into the net. The place is the input.
"""

import numpy as np
import pandas as pd
import torch
from data import arguments
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "nan_input"
ACCEPT = ()
PLACE = ("input", "loader")
SILENT = False
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

NUMBERS = ["area", "rooms", "floor", "age", "distance"]


def read_export(n=2000):
    rng = np.random.default_rng(15 + seed)
    rooms = rng.integers(1, 6, n)
    area = np.clip(210 * rooms + rng.normal(150, 90, n), 250, None)
    frame = pd.DataFrame(
        {
            "area": [f"{value:,.0f}" for value in area],
            "rooms": rooms,
            "floor": rng.integers(0, 9, n),
            "age": rng.uniform(0, 80, n).round(),
            "distance": rng.gamma(2, 2.5, n).round(1),
            "quarter": rng.choice(["north", "harbour", "old town", "hill"], n),
        }
    )
    quarter = frame["quarter"].map({"north": 0.0, "harbour": 0.25, "old town": 0.5, "hill": 0.35})
    price = 180 * area * (1 + quarter - 0.05 * frame["distance"].clip(upper=8))
    price += 2500 * frame["floor"] - 900 * frame["age"] * (frame["quarter"] != "old town")
    frame["price"] = price.clip(lower=20_000) * np.exp(rng.normal(0, 0.08, n))
    broken = rng.choice(n, 12, replace=False)
    frame.loc[broken, "area"] = ["n/a", "?", "-"] * 4
    return frame


def clean(frame):
    frame = frame[~frame["area"].isin(["n/a", "?", "-"])].copy()
    text = frame["area"].str.replace(",", "") if healthy else frame["area"]
    frame["area"] = pd.to_numeric(text, errors="coerce")
    return pd.get_dummies(frame, columns=["quarter"], dtype=float).reset_index(drop=True)


class FlatDataset(Dataset):
    def __init__(self, frame, mean, std, price_mean, price_std):
        frame = frame.copy()
        frame[NUMBERS] = (frame[NUMBERS] - mean) / std
        features = frame.drop(columns="price").to_numpy(dtype=np.float32)
        prices = (np.log(frame["price"].to_numpy()) - price_mean) / price_std
        self.features = torch.from_numpy(features)
        self.prices = torch.tensor(prices, dtype=torch.float32).unsqueeze(1)

    def __len__(self):
        return len(self.prices)

    def __getitem__(self, index):
        return self.features[index], self.prices[index]


frame = clean(read_export())
train_frame, valid_frame = train_test_split(frame, test_size=0.25, random_state=seed)
mean, std = train_frame[NUMBERS].mean(), train_frame[NUMBERS].std()
log_price = np.log(train_frame["price"])
scaling = mean, std, log_price.mean(), log_price.std()
train_set, valid_set = (FlatDataset(part, *scaling) for part in (train_frame, valid_frame))
train_loader = DataLoader(train_set, batch_size=64, shuffle=True)
valid_loader = DataLoader(valid_set, batch_size=256)
model = nn.Sequential(
    nn.Linear(train_set.features.shape[1], 64),
    nn.ReLU(),
    nn.Linear(64, 32),
    nn.ReLU(),
    nn.Linear(32, 1),
)
criterion = nn.SmoothL1Loss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

for epoch in range(15):
    model.train()
    train_loss = 0.0
    for features, prices in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(features), prices)
        loss.backward()
        optimizer.step()
        train_loss += loss.item() * len(prices)
    model.eval()
    valid_loss, squares = 0.0, 0.0
    with torch.no_grad():
        for features, prices in valid_loader:
            output = model(features)
            valid_loss += criterion(output, prices).item() * len(prices)
            squares += (output - prices).square().sum().item()
    r2 = 1 - squares / valid_set.prices.var(correction=0).item() / len(valid_set)
    print(
        f"Epoch: {epoch + 1:2d} \tTraining Loss: {train_loss / len(train_set):.5f}"
        f" \tValidation Loss: {valid_loss / len(valid_set):.5f} \tR2: {r2:.3f}"
    )
