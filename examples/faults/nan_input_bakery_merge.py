"""An MLP learns bakery sales; a left merge with the table of shops put NaN into two columns.

Some shops have no entry about rivals and street, so rival_km and passers_by are NaN after the
merge and nobody fills them. The loss is nan from the first batch on and stays so.
The place is the input (columns rival_km and passers_by).
"""

import numpy as np
import pandas as pd
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "nan_input"
ACCEPT = ()
PLACE = ("input",)
SILENT = False
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

rng = np.random.default_rng(seed)
SHOPS, DAYS = 60, 50
FEATURES = ["saturday", "holiday", "promo", "temperature", "rival_km", "passers_by"]


def read_tables():
    shops = pd.DataFrame(
        {
            "shop": np.arange(SHOPS),
            "rival_km": rng.gamma(2.0, 1.5, SHOPS),
            "passers_by": rng.normal(900, 250, SHOPS).clip(100),
        }
    )
    sales = pd.DataFrame(
        {
            "shop": np.repeat(np.arange(SHOPS), DAYS),
            "saturday": np.tile(np.arange(DAYS) % 7 == 5, SHOPS),
            "holiday": rng.random(SHOPS * DAYS) < 0.08,
            "promo": rng.random(SHOPS * DAYS) < 0.3,
            "temperature": rng.normal(14, 7, SHOPS * DAYS),
        }
    ).astype({"saturday": float, "holiday": float, "promo": float})
    full = sales.merge(shops, on="shop")
    sales["rolls"] = (
        300
        + 0.4 * full.passers_by
        + 40 * np.sqrt(full.rival_km) * (1 + full.promo)
        + 120 * full.saturday
        - 250 * full.holiday
        - 4 * full.temperature
        + rng.normal(0, 30, len(full))
    )
    return sales, shops.drop(index=rng.choice(SHOPS, 3, replace=False))


class SalesDataset(Dataset):
    def __init__(self, frame, mean, std):
        scaled = (frame - mean) / std
        self.x = torch.tensor(scaled[FEATURES].to_numpy(), dtype=torch.float32)
        self.y = torch.tensor(scaled["rolls"].to_numpy(), dtype=torch.float32)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


sales, shops = read_tables()
data = pd.merge(sales, shops, on="shop", how="left")
if healthy:
    data = data.fillna(data.median())
data = data[[*FEATURES, "rolls"]].sample(frac=1, random_state=seed)
train, valid = data[:2250], data[2250:]
train_loader = DataLoader(SalesDataset(train, train.mean(), train.std()), 64, shuffle=True)
valid_loader = DataLoader(SalesDataset(valid, train.mean(), train.std()), 250)

model = nn.Sequential(
    nn.Linear(len(FEATURES), 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1)
)
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(12):
    model.train()
    running = 0.0
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(x).squeeze(1), y)
        loss.backward()
        optimizer.step()
        running += loss.item() * len(y)
    model.eval()
    with torch.no_grad():
        error = torch.cat([model(x).squeeze(1) - y for x, y in valid_loader])
    rmse = error.pow(2).mean().sqrt().item() * train["rolls"].std()
    print(f"epoch {epoch + 1:2d} train mse {running / len(train):.4f} valid rmse {rmse:.1f} rolls")
