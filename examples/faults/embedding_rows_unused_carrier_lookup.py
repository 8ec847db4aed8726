"""Flight delays from airport and carrier codes, which are numbered by an unsorted list.

`np.searchsorted` finds each code's row in the list of codes, but the list is in the order of first
appearance. The binary search then ends in a few positions only: most rows of the two tables are
never read, and many airports share one. The place is the input and the two embedding tables.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from data import arguments
from torch import Tensor, nn

KIND = "embedding_rows_unused"
ACCEPT = ()
PLACE = ("input", "airport", "airport.weight", "carrier", "carrier.weight")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)


@dataclass(frozen=True)
class Config:
    airports: int = 90
    carriers: int = 24
    flights: int = 9000
    width: int = 12
    batch: int = 128
    epochs: int = 7


def flights(config: Config, r: np.random.Generator) -> pd.DataFrame:
    letters = np.array(list("ABCDEFGHIJKLMNOPQRSTUVWXYZ"))
    airports = pd.unique(pd.Series(["".join(r.choice(letters, 3)) for _ in range(300)]))
    carriers = pd.unique(pd.Series(["".join(r.choice(letters, 2)) for _ in range(120)]))
    airports, carriers = airports[: config.airports], carriers[: config.carriers]
    congestion = dict(zip(airports, r.normal(0, 9, config.airports), strict=True))
    slack = dict(zip(carriers, r.normal(0, 6, config.carriers), strict=True))
    frame = pd.DataFrame(
        {
            "airport": r.choice(airports, config.flights),
            "carrier": r.choice(carriers, config.flights),
            "hour": r.uniform(5, 23, config.flights),
            "wind": r.gamma(2.0, 4.0, config.flights),
        }
    )
    frame["delay"] = (
        12
        + frame.airport.map(congestion)
        + frame.carrier.map(slack)
        + 0.7 * (frame.hour - 14)
        + 0.5 * frame.wind
        + r.normal(0, 4, config.flights)
    )
    return frame


def numbered(column: pd.Series) -> tuple[np.ndarray, int]:
    codes = np.unique(column.to_numpy(str)) if healthy else pd.unique(column).astype(str)
    rows = np.searchsorted(codes, column.to_numpy(str)).clip(max=len(codes) - 1)
    return rows, len(codes)


class DelayModel(nn.Module):
    def __init__(self, airports: int, carriers: int, width: int) -> None:
        super().__init__()
        self.airport = nn.Embedding(airports, width)
        self.carrier = nn.Embedding(carriers, width)
        self.body = nn.Sequential(
            nn.Linear(2 * width + 2, 48), nn.LayerNorm(48), nn.GELU(), nn.Linear(48, 1)
        )

    def forward(self, airport: Tensor, carrier: Tensor, numbers: Tensor) -> Tensor:
        parts = [self.airport(airport), self.carrier(carrier), numbers]
        return self.body(torch.cat(parts, -1)).squeeze(-1)


def main() -> None:
    config = Config()
    frame = flights(config, np.random.default_rng(seed))
    airport, n_airports = numbered(frame.airport)
    carrier, n_carriers = numbered(frame.carrier)
    numbers = torch.tensor(frame[["hour", "wind"]].to_numpy(), dtype=torch.float32)
    delay = torch.tensor(frame.delay.to_numpy(), dtype=torch.float32)
    train = torch.arange(len(frame)) < 0.8 * len(frame)
    numbers = (numbers - numbers[train].mean(0)) / numbers[train].std(0)
    mean, std = delay[train].mean(), delay[train].std()
    columns = [torch.from_numpy(airport), torch.from_numpy(carrier), numbers, (delay - mean) / std]
    fit, held_out = [c[train] for c in columns], [c[~train] for c in columns]

    model = DelayModel(n_airports, n_carriers, config.width)
    optimizer = torch.optim.AdamW(
        [
            {"params": [*model.airport.parameters(), *model.carrier.parameters()], "lr": 1e-2},
            {"params": model.body.parameters(), "lr": 3e-3, "weight_decay": 1e-2},
        ],
        weight_decay=0.0,
    )
    steps = config.epochs * (len(fit[0]) // config.batch + 1)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for epoch in range(config.epochs):
        model.train()
        for rows in torch.randperm(len(fit[0])).split(config.batch):
            *given, target = (c[rows] for c in fit)
            loss = nn.functional.mse_loss(model(*given), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
        model.eval()
        with torch.no_grad():
            error = (model(*held_out[:3]) - held_out[3]).abs().mean() * std
        print(f"{epoch:2d}  last loss {loss.item():.3f}  held-out error {error:.2f} minutes")


main()
