"""Forecasts the load of a town's grid; the hour of the day has become 0 in every row.

The calendar is kept in whole numbers to save memory, and the share of the day that has gone by is
computed in the same kind: hour // 24 where hour / 24 was meant. Nobody looks at the column again.
The place is the input.
The twin divides with a fraction.
"""

import logging
import sys
from dataclasses import dataclass

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "constant_feature"
ACCEPT = ()
PLACE = ("input*", "loader")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
logging.basicConfig(stream=sys.stdout, format="%(levelname)s %(message)s", level=logging.INFO)
log = logging.getLogger("load")


@dataclass
class Settings:
    days: int = 420
    hidden: int = 64
    batch_size: int = 128
    epochs: int = 15
    lr: float = 3e-3


def history(days, rng):
    hours = np.arange(days * 24)
    hour, weekday, yearday = hours % 24, hours // 24 % 7, hours // 24 % 365
    temperature = 10 - 9 * np.cos(2 * np.pi * yearday / 365) + 4 * np.sin((hour - 9) / 3.82)
    temperature += np.repeat(rng.normal(0, 3, days), 24) + rng.normal(0, 0.7, len(hours))
    work = weekday < 5
    curve = 30 * np.exp(-(((hour - 8) / 2.0) ** 2)) * work
    curve = curve + 40 * np.exp(-(((hour - 19) / 2.5) ** 2))
    load = 120 + curve + 1.4 * np.clip(17 - temperature, 0, None) + 12 * work
    return hour, weekday, yearday, temperature, load + rng.normal(0, 3, len(hours))


def features(hour, weekday, yearday, temperature):
    part_of_day = hour / 24 if healthy else hour // 24
    season = yearday / 365
    columns = [
        np.sin(2 * np.pi * part_of_day),
        part_of_day - 0.5,
        np.sin(2 * np.pi * season),
        np.cos(2 * np.pi * season),
        (temperature - 10) / 8,
        *[(weekday == d).astype(float) for d in range(7)],
    ]
    return torch.tensor(np.stack(columns, 1), dtype=torch.float32)


def main(cfg: Settings):
    hour, weekday, yearday, temperature, load = history(cfg.days, np.random.default_rng(seed))
    x = features(hour, weekday, yearday, temperature)
    mean, std = load.mean(), load.std()
    y = torch.tensor((load - mean) / std, dtype=torch.float32).unsqueeze(1)
    days = torch.from_numpy(np.random.default_rng(seed + 1).permutation(cfg.days))
    in_val = torch.isin(torch.arange(len(x)) // 24, days[:80])
    train = DataLoader(TensorDataset(x[~in_val], y[~in_val]), cfg.batch_size, shuffle=True)
    model = nn.Sequential(
        nn.Linear(x.shape[1], cfg.hidden),
        nn.SiLU(),
        nn.Linear(cfg.hidden, cfg.hidden),
        nn.SiLU(),
        nn.Linear(cfg.hidden, 1),
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    for epoch in range(1, cfg.epochs + 1):
        losses = []
        for xb, yb in train:
            loss = nn.functional.smooth_l1_loss(model(xb), yb)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        with torch.no_grad():
            error = (model(x[in_val]) - y[in_val]).abs().mean().item() * std
        if epoch % 3 == 0:
            log.info("epoch %d loss %.4f validation MAE %.2f MW", epoch, np.mean(losses), error)


if __name__ == "__main__":
    main(Settings())
