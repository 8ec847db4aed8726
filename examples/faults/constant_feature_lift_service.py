"""Lift failures are predicted from service records; the days since the last service are computed
with the dates the wrong way round and clipped at zero.

`last_service - today` is never positive, so `clip(lower=0)` makes the column 0 for each lift. The
network trains on what is left of the columns. The place is the input: column `days_since_service`.
"""

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "constant_feature"
ACCEPT = ()
PLACE = ("input",)
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

NUMBERS = ["days_since_service", "trips_per_day", "load", "vibration"]
MAKERS = 4


def records(count):
    r = np.random.default_rng(seed + 7)
    today = pd.Timestamp("2024-06-01")
    table = pd.DataFrame({
        "last_service": today - pd.to_timedelta(r.integers(1, 400, count), unit="D"),
        "trips_per_day": r.gamma(4, 60, count),
        "load": r.beta(3, 4, count),
        "vibration": r.lognormal(0, 0.3, count),
        "maker": r.integers(0, MAKERS, count),
    })  # fmt: skip
    gap = (today - table["last_service"]) if healthy else (table["last_service"] - today)
    table["days_since_service"] = gap.dt.days.clip(lower=0).astype(float)
    since = (today - table["last_service"]).dt.days / 365
    interval = np.array([0.35, 0.5, 0.65, 0.8])[table["maker"]]
    risk = 9 * (since - interval) + 0.006 * (table["trips_per_day"] - 240)
    risk = risk + 1.5 * (table["load"] - 0.43) + 0.8 * (table["vibration"] - 1)
    table["failed"] = (r.random(count) < 1 / (1 + np.exp(-risk))).astype(np.float32)
    return table


class Lifts(Dataset):
    def __init__(self, table, mean, std):
        numbers = (table[NUMBERS] - mean) / std.where(std > 0, 1.0)
        self.numbers = torch.tensor(numbers.to_numpy(), dtype=torch.float32)
        self.maker = torch.tensor(table["maker"].to_numpy())
        self.failed = torch.tensor(table["failed"].to_numpy())

    def __len__(self):
        return len(self.failed)

    def __getitem__(self, i):
        return {"numbers": self.numbers[i], "maker": self.maker[i], "failed": self.failed[i]}


class FailureNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.maker = nn.Embedding(MAKERS, 3)
        self.layers = nn.Sequential(nn.Linear(len(NUMBERS) + 3, 32), nn.Tanh(), nn.Linear(32, 1))

    def forward(self, batch):
        columns = torch.cat([batch["numbers"], self.maker(batch["maker"])], 1)
        return self.layers(columns).squeeze(1)


def main():
    table = records(2400)
    train, val = table.iloc[:1800], table.iloc[1800:]
    mean, std = train[NUMBERS].mean(), train[NUMBERS].std()
    loader = DataLoader(Lifts(train, mean, std), batch_size=64, shuffle=True)
    held_out = next(iter(DataLoader(Lifts(val, mean, std), batch_size=600)))
    model = FailureNet()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=3e-3)
    for epoch in range(10):
        model.train()
        total = 0.0
        for batch in loader:
            loss = F.binary_cross_entropy_with_logits(model(batch), batch["failed"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() / len(loader)
        model.eval()
        with torch.no_grad():
            score = model(held_out)
        val_loss = F.binary_cross_entropy_with_logits(score, held_out["failed"])
        right = ((score > 0) == (held_out["failed"] > 0.5)).float().mean()
        print(f"epoch {epoch} loss {total:.3f} validation {val_loss:.3f} accuracy {right:.3f}")


main()
