"""Arrival delays of flights are predicted from a table that also holds the causes of the delay.

The person takes all numeric columns but the target. Five of them (carrier, weather, ... delay)
are filled in after the landing and add up to the delay of all flights that were late, so the
model only adds them up. On tomorrow's flights the five are still empty. The place is the input
(columns of the table).
"""

import numpy as np
import pandas as pd
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "target_leak"
ACCEPT = ("future_leak",)
PLACE = ("input", "labels", "loader")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

CATEGORIES = {"carrier": 8, "origin": 20, "destination": 20}
CAUSES = ["carrier_delay", "weather_delay", "nas_delay", "security_delay", "late_aircraft_delay"]


def flights(n: int, landed: bool, offset: int) -> pd.DataFrame:
    r = np.random.default_rng(900 + 10 * seed + offset)
    layout = np.random.default_rng(77 + seed)
    slow, busy = layout.normal(0, 6, 8), layout.gamma(2.0, 4.0, 20)
    table = pd.DataFrame({name: r.integers(0, size, n) for name, size in CATEGORIES.items()})
    table["hour"] = r.integers(5, 23, n)
    table["distance"] = r.gamma(3.0, 300.0, n)
    table["wind"] = r.gamma(2.0, 5.0, n)
    table["visibility"] = np.clip(r.normal(9, 3, n), 0.2, 12)
    table["turnaround"] = r.uniform(25, 90, n)
    table["incoming_delay"] = np.clip(r.normal(0, 22, n), -15, None)
    parts = np.stack(
        [
            slow[table.carrier] + r.normal(0, 6, n),
            1.2 * np.clip(table.wind - 14, 0, None) + 3 * np.clip(4 - table.visibility, 0, None),
            0.08 * busy[table.destination] * (table.hour - 4) + r.normal(0, 5, n),
            r.exponential(0.4, n),
            np.clip(table.incoming_delay - 0.35 * (table.turnaround - 25), 0, None),
        ],
        1,
    )
    delay = parts.sum(1) - 9
    causes = np.clip(parts, 0, None)
    causes = causes / causes.sum(1, keepdims=True) * delay[:, None]
    known = landed & (delay >= 15)
    table[CAUSES] = np.where(known[:, None], causes, 0.0)
    table["arrival_delay"] = delay
    return table


class FlightTable(Dataset):
    def __init__(self, table: pd.DataFrame, columns: list[str], mean, std):
        self.codes = torch.tensor(table[list(CATEGORIES)].to_numpy())
        values = (table[columns] - mean[columns]) / std[columns]
        self.numbers = torch.tensor(values.to_numpy(), dtype=torch.float32)
        self.delay = torch.tensor(table["arrival_delay"].to_numpy() / 20, dtype=torch.float32)

    def __len__(self):
        return len(self.delay)

    def __getitem__(self, i):
        return {"codes": self.codes[i], "numbers": self.numbers[i], "delay": self.delay[i]}


class DelayModel(nn.Module):
    def __init__(self, numbers: int):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(size, 6) for size in CATEGORIES.values())
        self.layers = nn.Sequential(
            nn.Linear(18 + numbers, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1)
        )

    def forward(self, batch):
        parts = [table(batch["codes"][:, i]) for i, table in enumerate(self.tables)]
        return self.layers(torch.cat([*parts, batch["numbers"]], 1)).squeeze(1)


def minutes_off(model, loader) -> float:
    model.eval()
    with torch.no_grad():
        errors = [(model(batch) - batch["delay"]).abs() for batch in loader]
    return 20 * torch.cat(errors).mean().item()


def main():
    history = flights(4000, landed=True, offset=0)
    tomorrow = flights(1000, landed=False, offset=1)
    unused = {*CATEGORIES, "arrival_delay", *(CAUSES if healthy else ())}
    columns = [name for name in history.columns if name not in unused]
    fit, held_out = history.iloc[:3200], history.iloc[3200:]
    scale = fit.mean(), fit.std()
    train_loader = DataLoader(FlightTable(fit, columns, *scale), batch_size=64, shuffle=True)
    val_loader = DataLoader(FlightTable(held_out, columns, *scale), batch_size=400)
    live_loader = DataLoader(FlightTable(tomorrow, columns, *scale), batch_size=500)

    model = DelayModel(len(columns))
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, weight_decay=1e-5)
    criterion = nn.SmoothL1Loss()
    for epoch in range(12):
        model.train()
        total = 0.0
        for batch in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(batch), batch["delay"])
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(
            f"epoch {epoch + 1:2d}  loss {total / len(train_loader):.4f}"
            f"  validation off by {minutes_off(model, val_loader):.2f} min"
        )
        if epoch == 7:
            optimizer.param_groups[0]["lr"] = 4e-4
    spread = (tomorrow["arrival_delay"] - tomorrow["arrival_delay"].median()).abs().mean()
    print(f"tomorrow's flights: off by {minutes_off(model, live_loader):.2f} min")
    print(f"always the median: {spread:.2f} min")


if __name__ == "__main__":
    main()
