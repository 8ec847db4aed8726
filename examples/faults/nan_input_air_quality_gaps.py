"""Forecasts a pollutant from sensors with missing hours; the gaps go into the network as NaN.

The station's table is read with pandas and its columns are turned into tensors. A sensor now and
then has no value, the standardisation skips it, and the first window with a gap makes the loss and
all weights NaN. The place is the input. The twin interpolates the gaps.
"""

import numpy as np
import pandas as pd
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "nan_input"
ACCEPT = ()
PLACE = ("input", "loader")
SILENT = False
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

COLUMNS = ["no2", "ozone", "temperature", "wind", "traffic"]
WINDOW = 24


def station(hours, rng):
    """Hourly readings with a daily rhythm; every sensor drops out for a few hours now and then."""
    t = pd.date_range("2019-03-01", periods=hours, freq="h")
    hour = t.hour.to_numpy()
    weekend = (t.dayofweek >= 5).astype(float)
    drift = np.zeros((hours, 2))
    for i in range(1, hours):
        drift[i] = 0.97 * drift[i - 1] + rng.normal(0, [0.6, 0.3])
    temperature = 14 + 6 * np.sin((hour - 9) / 24 * 2 * np.pi) + 1.5 * drift[:, 0]
    wind = np.exp(0.9 + 0.5 * drift[:, 1])
    rush = np.exp(-((hour - 8) ** 2) / 6) + np.exp(-((hour - 18) ** 2) / 9)
    traffic = 200 + 900 * rush * (1 - 0.6 * weekend) + rng.normal(0, 40, hours)
    no2 = np.zeros(hours)
    for i in range(1, hours):
        no2[i] = 0.8 * no2[i - 1] + 0.03 * traffic[i] / (0.6 + 0.4 * wind[i]) + rng.normal(0, 1.2)
    ozone = 60 + 2.2 * (temperature - 14) - 0.4 * no2 + rng.normal(0, 3, hours)
    series = [no2, ozone, temperature, wind, traffic]
    table = pd.DataFrame(dict(zip(COLUMNS, series, strict=True)), index=t)
    for column in COLUMNS:
        for start in rng.integers(0, hours - 8, hours // 250):
            table.iloc[start : start + rng.integers(1, 6), table.columns.get_loc(column)] = np.nan
    return table


class Windows(Dataset):
    def __init__(self, table):
        self.values = torch.tensor(table.to_numpy(), dtype=torch.float32)

    def __len__(self):
        return len(self.values) - WINDOW

    def __getitem__(self, i):
        return self.values[i : i + WINDOW], self.values[i + WINDOW, 0]


class Forecaster(nn.Module):
    def __init__(self, n_inputs, hidden=24):
        super().__init__()
        self.lstm = nn.LSTM(n_inputs, hidden, batch_first=True)
        self.linear = nn.Linear(hidden, 1)

    def forward(self, x):
        _, (hidden, _) = self.lstm(x)
        return self.linear(hidden[-1]).squeeze(-1)


def main():
    table = station(2600, np.random.default_rng(140 + seed))
    print(table.describe().loc[["count", "mean", "std"]].round(1).to_string())
    if healthy:
        table = table.interpolate(limit_direction="both")
    split = int(0.8 * len(table))
    mean, std = table.iloc[:split].mean(), table.iloc[:split].std()
    table = (table - mean) / std
    train = DataLoader(Windows(table.iloc[:split]), batch_size=32, shuffle=True)
    valid = DataLoader(Windows(table.iloc[split:]), batch_size=200)
    model = Forecaster(len(COLUMNS))
    optimizer = torch.optim.RMSprop(model.parameters(), lr=2e-3)
    criterion = nn.MSELoss()
    for epoch in range(1, 9):
        model.train()
        train_losses = []
        for x, y in train:
            loss = criterion(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            train_losses.append(loss.item())
        model.eval()
        with torch.no_grad():
            errors = torch.cat([(model(x) - y).abs() for x, y in valid])
        print(
            f"Epoch {epoch}  train loss: {np.mean(train_losses):.4f}  "
            f"valid MAE: {errors.mean() * std['no2']:.2f} ug/m3"
        )


if __name__ == "__main__":
    main()
