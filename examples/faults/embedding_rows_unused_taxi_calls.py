"""Taxi calls by zone, weekday and hour, where the table of hours only ever uses its first row.

The person joined the weather, which is known by the day, and for that cut the time stamps down to
the day; the hour is read from the same column afterwards. Every call comes at hour 0 and the
other 23 rows of the embedding are never used. The place is tables.hour.
"""

import numpy as np
import pandas as pd
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "embedding_rows_unused"
ACCEPT = ("constant_feature",)
PLACE = ("input", "tables.hour", "tables.hour.weight", "*hour*", "loader")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

SIZES = {"zone": 12, "weekday": 7, "hour": 24}


def call_counts(days, rng):
    """One row per zone and hour: the calls that came in."""
    times = pd.date_range("2024-03-04", periods=days * 24, freq="h")
    frame = pd.DataFrame({"time": np.repeat(times, 12), "zone": np.tile(np.arange(12), len(times))})
    hour = frame["time"].dt.hour.to_numpy()
    weekday = frame["time"].dt.dayofweek.to_numpy()
    zone = frame["zone"].to_numpy()
    night_out = np.exp(-(((hour + 2) % 24 - 1) ** 2) / 8) * (weekday >= 4) * (zone < 4)
    to_work = np.exp(-((hour - 8) ** 2) / 3) * (weekday < 5) * (zone >= 6)
    evening = np.exp(-((hour - 18) ** 2) / 6)
    rain = rng.gamma(0.5, 2.0, days)
    day = (frame["time"].dt.dayofyear - frame["time"].dt.dayofyear.iloc[0]).to_numpy()
    rate = 3.0 + 0.1 * zone + 2.0 * night_out + 1.6 * to_work + 0.9 * evening
    frame["calls"] = rng.poisson(np.exp(0.8 * rate + 0.08 * np.minimum(rain[day], 5)))
    weather = pd.DataFrame({"time": times[::24], "rain": rain})
    return frame, weather


def add_columns(frame, weather):
    if healthy:
        frame["hour"] = frame["time"].dt.hour
        frame["time"] = frame["time"].dt.floor("D")
    else:
        frame["time"] = frame["time"].dt.floor("D")
        frame["hour"] = frame["time"].dt.hour
    frame["weekday"] = frame["time"].dt.dayofweek
    frame = frame.merge(weather, on="time", how="left")
    frame["rain"] = (frame["rain"] - frame["rain"].mean()) / frame["rain"].std()
    frame["target"] = np.log1p(frame["calls"])
    return frame


class CallRows(Dataset):
    def __init__(self, frame):
        self.keys = torch.tensor(frame[list(SIZES)].to_numpy(), dtype=torch.int64)
        self.rain = torch.tensor(frame["rain"].to_numpy(), dtype=torch.float32)
        self.target = torch.tensor(frame["target"].to_numpy(), dtype=torch.float32)

    def __len__(self):
        return len(self.target)

    def __getitem__(self, i):
        return self.keys[i], self.rain[i], self.target[i]


class DemandNet(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.tables = nn.ModuleDict({name: nn.Embedding(n, width) for name, n in SIZES.items()})
        self.mlp = nn.Sequential(
            nn.Linear(width * len(SIZES) + 1, 48), nn.ReLU(), nn.Linear(48, 24), nn.ReLU(),
            nn.Linear(24, 1),
        )  # fmt: skip

    def forward(self, keys, rain):
        found = [table(keys[:, i]) for i, table in enumerate(self.tables.values())]
        return self.mlp(torch.cat([*found, rain.unsqueeze(1)], 1)).squeeze(1)


def main():
    rng = np.random.default_rng(seed)
    frame = add_columns(*call_counts(63, rng))
    days = frame["time"].drop_duplicates().sample(frac=1, random_state=seed)
    held_out = frame["time"].isin(days[:14])
    centre, spread = frame.loc[~held_out, "target"].mean(), frame.loc[~held_out, "target"].std()
    frame["target"] = (frame["target"] - centre) / spread
    train = DataLoader(CallRows(frame[~held_out]), batch_size=128, shuffle=True)
    val = DataLoader(CallRows(frame[held_out]), batch_size=1024)
    model = DemandNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    criterion = nn.SmoothL1Loss()
    for epoch in range(8):
        total = 0.0
        for keys, rain, target in train:
            optimizer.zero_grad()
            loss = criterion(model(keys, rain), target)
            loss.backward()
            optimizer.step()
            total += loss.item()
        with torch.no_grad():
            pairs = [(model(keys, rain), target) for keys, rain, target in val]
        guess, truth = (torch.cat(part) for part in zip(*pairs, strict=True))
        r2 = 1 - ((guess - truth) ** 2).mean() / truth.var()
        print(f"epoch {epoch} loss {total / len(train):.4f} held-out days: R2 {r2:.3f}")


main()
