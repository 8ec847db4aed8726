"""Delivery times from monthly exports put together, each of which holds all earlier rows again.

The person read all files of a folder into one table. The exports are cumulative, so the first
month is in it eight times and the last one once: the model goes by the slow old days and tells too
much time. Validation parcels were set apart by number, so that none of them is in training.
The place is the input, the data preparation.
"""

import numpy as np
import pandas as pd
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "duplicated_rows"
ACCEPT = ()
PLACE = ("input", "loader", "labels")
SILENT = True
EXACT = True
EARLY = False
healthy, seed = arguments(__doc__)

MONTHS, PER_MONTH = 8, 240
FEATURES = ["distance", "weight", "stops", "hour_sin", "hour_cos", "rain"]


def month_of_deliveries(month, rng):
    hour = rng.uniform(7, 20, PER_MONTH)
    table = pd.DataFrame(
        {
            "parcel": month * PER_MONTH + np.arange(PER_MONTH),
            "month": month,
            "distance": rng.gamma(3.0, 4.0, PER_MONTH),
            "weight": rng.lognormal(1.0, 0.6, PER_MONTH),
            "stops": rng.poisson(6, PER_MONTH),
            "hour_sin": np.sin(hour / 24 * 2 * np.pi),
            "hour_cos": np.cos(hour / 24 * 2 * np.pi),
            "rain": rng.random(PER_MONTH) < 0.4,
        }
    )
    pace = 3.4 - 0.3 * month
    rush = 9 * np.exp(-((hour - 17) ** 2) / 3)
    minutes = pace * table.distance + 3.2 * table.stops + rush + 0.9 * table.weight
    minutes += table.rain * 0.35 * table.distance + rng.normal(0, 5, PER_MONTH)
    return table.assign(minutes=minutes)


def exports(months):
    """One file per month, each with everything delivered so far."""
    for last in range(len(months)):
        yield pd.concat(months[: last + 1], ignore_index=True)


def load_deliveries(files):
    table = pd.concat(files, ignore_index=True)
    if healthy:
        table = table.drop_duplicates(subset="parcel")
    for_validation = table.parcel % 3 == 0
    return table[~for_validation], table[for_validation].drop_duplicates(subset="parcel")


def tensors(table, mean, std):
    x = ((table[FEATURES].astype(float) - mean) / std).to_numpy()
    return torch.tensor(x, dtype=torch.float32), torch.tensor(table.minutes.to_numpy()).float()


def main():
    rng = np.random.default_rng(seed)
    months = [month_of_deliveries(month, rng) for month in range(MONTHS)]
    train, val = load_deliveries(exports(months))
    print(f"{len(train)} rows for {train.parcel.nunique()} parcels")
    mean, std = train[FEATURES].astype(float).mean(), train[FEATURES].astype(float).std()
    x, y = tensors(train, mean, std)
    x_val, y_val = tensors(val, mean, std)
    centre, scale = y.mean(), y.std()
    batch = 64
    loader = DataLoader(TensorDataset(x, (y - centre) / scale), batch_size=batch, shuffle=True)
    model = nn.Sequential(
        nn.Linear(len(FEATURES), 32), nn.ELU(), nn.Linear(32, 16), nn.ELU(), nn.Linear(16, 1)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    epochs = 900 // len(loader) + 1
    for epoch in range(epochs):
        model.train()
        losses = []
        for features, target in loader:
            loss = nn.functional.mse_loss(model(features).squeeze(1), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        model.eval()
        with torch.no_grad():
            error = model(x_val).squeeze(1) * scale + centre - y_val
        if epoch == epochs - 1 or epoch % (epochs // 4) == 0:
            rmse = error.pow(2).mean().sqrt()
            print(
                f"epoch {epoch:2d} loss {np.mean(losses):.3f} val rmse {rmse:.2f} min, "
                f"on average {error.mean():+.2f} min"
            )


main()
