"""Customer value is regressed on a table whose ratio spend / (visits + 1e-6) is in the millions
for the few customers without a visit.

The ratio is fine for nearly all rows and the robust scaler leaves the few extreme ones where they
are. Whenever a batch holds one, the loss jumps by many orders of magnitude and the step after it is
worth nothing, gradient clipping or not. The place is the input (the column spend_per_visit).
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from accelerate import Accelerator
from data import arguments
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, RobustScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "loss_spike"
ACCEPT = ("input_not_normalized",)
PLACE = ("input", "loader")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

NUMBERS = ["spend", "visits", "months", "basket", "spend_per_visit"]


@dataclass
class ValueConfig:
    lr: float = 3e-3
    epochs: int = 12
    batch_size: int = 64
    max_norm: float = 1.0


def customers(n: int) -> pd.DataFrame:
    rng = np.random.default_rng(60 + seed)
    visits = 1 + rng.poisson(6, n)
    basket = rng.gamma(4, 8, n)
    table = pd.DataFrame({"visits": visits, "basket": basket, "spend": visits * basket})
    table["months"] = rng.integers(1, 48, n)
    table["segment"] = rng.choice(["web", "shop", "phone"], n)
    bonus = table["segment"].map({"web": 0.4, "shop": 0.0, "phone": -0.5})
    table["value"] = (
        np.log(table["spend"]) + 0.6 * np.log(table["months"]) * (basket > 30) + bonus
    ) + rng.normal(0, 0.25, n)
    table["value"] = (table["value"] - table["value"].mean()) / table["value"].std()
    by_phone_only = rng.choice(n, n // 300, replace=False)
    table.loc[by_phone_only, "visits"] = 0
    return table


def add_ratio(table: pd.DataFrame) -> pd.DataFrame:
    divisor = table["visits"].clip(lower=1) if healthy else table["visits"] + 1e-6
    return table.assign(spend_per_visit=table["spend"] / divisor)


def tensors(pipeline: Pipeline, table: pd.DataFrame) -> TensorDataset:
    x = torch.tensor(pipeline.transform(table), dtype=torch.float32)
    return TensorDataset(x, torch.tensor(table["value"].to_numpy(), dtype=torch.float32))


def main() -> None:
    config = ValueConfig()
    train, valid = train_test_split(add_ratio(customers(2400)), test_size=0.25, random_state=seed)
    columns = [("numbers", RobustScaler(), NUMBERS), ("kinds", OneHotEncoder(), ["segment"])]
    pipeline = Pipeline([("columns", ColumnTransformer(columns))]).fit(train)
    model = nn.Sequential(
        nn.Linear(8, 48), nn.ReLU(), nn.Linear(48, 32), nn.ReLU(), nn.Linear(32, 1)
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=config.lr, weight_decay=1e-3)
    accelerator = Accelerator(cpu=True)
    loader = DataLoader(tensors(pipeline, train), config.batch_size, shuffle=True)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    x_val, y_val = tensors(pipeline, valid).tensors
    for epoch in range(config.epochs):
        losses = []
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x).squeeze(1), y)
            optimizer.zero_grad()
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), config.max_norm)
            optimizer.step()
            losses.append(loss.item())
        with torch.no_grad():
            off = (model(x_val).squeeze(1) - y_val).abs()
        print(
            f"epoch {epoch + 1:2d}  median {np.median(losses):.4f}  largest {max(losses):.3g}  "
            f"validation: median error {off.median():.3f}  mean error {off.mean():.3g}"
        )


if __name__ == "__main__":
    main()
