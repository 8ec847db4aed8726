"""Taxi fares are regressed on a trip's features, and the distance is a norm taken over the whole
table instead of per trip, one number for all.

`np.linalg.norm(drop - pick)` without `axis=1` returns a scalar, which pandas spreads over the
column. What drives the fare most is lost, and the rest explains little. The place is the input:
column `distance`.
"""

import numpy as np
import pandas as pd
import torch
from data import arguments
from torch import nn

KIND = "constant_feature"
ACCEPT = ()
PLACE = ("input",)
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)


def trips(count):
    r = np.random.default_rng(seed)
    table = pd.DataFrame({
        "passengers": r.integers(1, 6, count).astype(float),
        "rain": r.gamma(1.0, 1.0, count),
        "night": (r.random(count) < 0.3).astype(float),
        "jam": r.beta(2, 3, count),
    })  # fmt: skip
    pick = r.normal(0, 6, (count, 2))
    heading, way = r.uniform(0, 2 * np.pi, count), r.gamma(2.5, 2.2, count)
    drop = pick + (way * np.stack([np.cos(heading), np.sin(heading)])).T
    table["distance"] = (
        np.linalg.norm(drop - pick, axis=1) if healthy else np.linalg.norm(drop - pick)
    )
    fare = 3 + way * (1.6 + 1.1 * table["jam"] + 0.5 * table["night"]) + 0.4 * table["rain"]
    fare = fare + 0.5 * (table["passengers"] > 4) + r.normal(0, 0.8, count)
    return table, fare.to_numpy()


def standardise(part, fitted_on):
    mean, std = fitted_on.mean(0), fitted_on.std(0)
    return torch.tensor((part - mean) / np.where(std > 1e-9, std, 1.0), dtype=torch.float32)


class FareNet(nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(columns, 48), nn.SiLU(), nn.Linear(48, 24), nn.SiLU(), nn.Linear(24, 1)
        )

    def forward(self, batch):
        return self.layers(batch["columns"]).squeeze(1)


def main():
    table, fare = trips(3000)
    columns, fold = table.to_numpy(), np.arange(3000) % 5
    result = []
    for k in range(2):
        inside, outside = fold != k, fold == k
        train = {
            "columns": standardise(columns[inside], columns[inside]),
            "fare": standardise(fare[inside], fare[inside]),
        }
        val = {
            "columns": standardise(columns[outside], columns[inside]),
            "fare": standardise(fare[outside], fare[inside]),
        }
        model = FareNet(table.shape[1])
        optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
        for epoch in range(15):
            model.train()
            for rows in torch.randperm(2400).split(80):
                batch = {name: part[rows] for name, part in train.items()}
                loss = nn.functional.mse_loss(model(batch), batch["fare"])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            model.eval()
            with torch.no_grad():
                train_error = nn.functional.mse_loss(model(train), train["fare"]).item()
                error = nn.functional.mse_loss(model(val), val["fare"]).item()
            if epoch % 3 == 2:
                print(f"fold {k} epoch {epoch:2d} train {train_error:.3f} validation {error:.3f}")
        result.append(1 - error)
    print("R2 of the folds " + " ".join(f"{score:.3f}" for score in result))


main()
