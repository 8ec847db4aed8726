"""A boiler-efficiency model on an event log that was forward-filled to one row for each minute.

The person wanted an even grid of times and called resample().ffill() on readings that come only on
change. An idle boiler gives one reading in hours, so a few hundred idle readings make up nearly
all rows, each many times, and the busy hours hardly count. The place is the loader, or the input.
"""

import numpy as np
import pandas as pd
import torch
from data import arguments, standardise
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "duplicated_rows"
ACCEPT = ()
PLACE = ("loader", "input", "labels")
SILENT = True
EXACT = True
EARLY = False
healthy, seed = arguments(__doc__)

COLUMNS = ["load", "return_temperature", "air", "outside", "hours_since_service"]


def event_log(readings, start, rng):
    """Readings on change: minutes apart when busy, up to hours apart when idle."""
    busy = np.zeros(readings, bool)
    for i in range(1, readings):
        busy[i] = rng.random() < (0.95 if busy[i - 1] else 0.45)
    gaps = np.where(busy, rng.integers(1, 3, readings), rng.integers(40, 260, readings))
    load = np.where(busy, rng.uniform(0.3, 1.0, readings), rng.uniform(0.02, 0.1, readings))
    back = rng.uniform(35, 70, readings)
    air = rng.normal(1.3, 0.15, readings)
    outside = rng.normal(6, 7, readings)
    hours = rng.uniform(0, 2000, readings)
    condensing = 1 / (1 + np.exp((back - 53) / 3))
    efficiency = 86 + 9 * condensing * (1 - 0.4 * load) - 25 * (air - 1.25) ** 2 * (0.5 + load)
    efficiency += 3 * np.sin(3 * load) - 0.0012 * hours * load + 0.05 * outside * (load > 0.2)
    efficiency -= 6 * (load < 0.12)
    table = pd.DataFrame(
        np.column_stack([load, back, air, outside, hours]),
        columns=COLUMNS,
        index=pd.Timestamp(start) + pd.to_timedelta(np.cumsum(gaps), unit="min"),
    )
    table["efficiency"] = efficiency + rng.normal(0, 0.5, readings)
    return table


def prepare(table, even_grid):
    return table.resample("1min").ffill().dropna() if even_grid else table


def tensors(table):
    x = torch.tensor(table[COLUMNS].to_numpy(), dtype=torch.float32)
    return x, torch.tensor(table["efficiency"].to_numpy(), dtype=torch.float32)


class EfficiencyNet(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(len(COLUMNS), width),
            nn.SiLU(),
            nn.Linear(width, width),
            nn.SiLU(),
            nn.Linear(width, 1),
        )

    def forward(self, x):
        return self.layers(x).squeeze(-1)


def cycle(loader):
    while True:
        yield from loader


def main():
    rng = np.random.default_rng(120 + seed)
    train = prepare(event_log(1800, "2023-01-02", rng), even_grid=not healthy)
    val = event_log(700, "2024-01-02", rng)
    print(f"{len(train)} rows to train on, {len(val)} readings to validate on")
    x, y = tensors(train)
    x_val, y_val = tensors(val)
    (x, x_val), (y, y_val_scaled) = standardise(x, x_val), standardise(y, y_val)
    spread = y_val.std() / y_val_scaled.std()
    busy = torch.tensor((val["load"] > 0.2).to_numpy())
    loader = cycle(DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True))
    model = EfficiencyNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=1e-3)
    steps = 1000
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps)
    running = 0.0
    for step in range(1, steps + 1):
        model.train()
        features, target = next(loader)
        loss = (model(features) - target).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        running += loss.item() / 100
        if step % 100 == 0:
            model.eval()
            with torch.no_grad():
                off = (model(x_val) - y_val_scaled) * spread
            print(
                f"step {step:4d}  loss {running:.4f}  val RMSE {off.square().mean().sqrt():.3f} "
                f"points  busy {off[busy].square().mean().sqrt():.3f}  "
                f"idle {off[~busy].square().mean().sqrt():.3f}"
            )
            running = 0.0


if __name__ == "__main__":
    main()
