"""Hours to close a support ticket from tabular features; tickets are trained on once per tag, as
the exploded tag list is never folded back.

The tags of a ticket came as a list. To count and weigh them they called explode(), computed the
tag features with groupby().transform(), and dropped the tag column, which leaves one identical row
for every tag that the ticket had. The place is the input: build_table().
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "duplicated_rows"
ACCEPT = ("overfit",)
PLACE = ("input", "loader")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

NUMERIC = ["priority", "queue", "messages", "seniority", "backlog", "attachments", "age", "hour"]


@dataclass
class Config:
    tickets: int = 1100
    width: int = 64
    batch_size: int = 64
    epochs: int = 32
    lr: float = 2e-3
    weight_decay: float = 1e-2


def load_tickets(n: int) -> pd.DataFrame:
    r = np.random.default_rng(400 + seed)
    frame = pd.DataFrame(r.normal(size=(n, len(NUMERIC))), columns=NUMERIC)
    names = [f"tag{i}" for i in range(40)]
    weights = 1 / np.arange(1, 41)
    count = np.clip(r.geometric(0.22, n), 1, 14)
    frame["tags"] = [
        list(r.choice(names, k, replace=False, p=weights / weights.sum())) for k in count
    ]
    frame.insert(0, "ticket_id", np.arange(n))
    base = 0.8 * frame.priority - 0.6 * frame.seniority + 0.5 * frame.backlog * (frame.queue > 0)
    noise = r.normal(0, 0.2 + 0.08 * count, n)
    frame["log_hours"] = 2 + base + 0.3 * np.sin(2 * frame.age) - 0.25 * np.log(count) + noise
    return frame


def build_table(tickets: pd.DataFrame, frequency: pd.Series) -> pd.DataFrame:
    long = tickets.explode("tags")
    long["frequency"] = long["tags"].map(frequency).fillna(0.0)
    grouped = long.groupby("ticket_id")
    long["tag_count"] = np.log(grouped["tags"].transform("size"))
    long["rarest"] = grouped["frequency"].transform("min")
    long["commonest"] = grouped["frequency"].transform("max")
    table = long.drop(columns=["tags", "frequency"])
    if healthy:
        table = table.drop_duplicates("ticket_id")
    return table.reset_index(drop=True)


class Regressor(nn.Module):
    def __init__(self, features: int, width: int):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(features, width),
            nn.SiLU(),
            nn.Linear(width, width),
            nn.SiLU(),
            nn.Linear(width, 1),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.net(x).squeeze(1)


def main() -> None:
    cfg = Config()
    tickets = load_tickets(cfg.tickets)
    ids = np.random.default_rng(seed).permutation(cfg.tickets)
    train_part = tickets[tickets.ticket_id.isin(ids[: int(0.7 * cfg.tickets)])]
    val_part = tickets[tickets.ticket_id.isin(ids[int(0.7 * cfg.tickets) :])]
    frequency = train_part["tags"].explode().value_counts(normalize=True)
    train = build_table(train_part, frequency)
    val = build_table(val_part, frequency).drop_duplicates("ticket_id")
    columns = [c for c in train.columns if c not in ("ticket_id", "log_hours")]
    mean, std = train[columns].mean(), train[columns].std()
    center, spread = train.log_hours.mean(), train.log_hours.std()
    x, x_val = (
        torch.tensor(((t[columns] - mean) / std).to_numpy(), dtype=torch.float32)
        for t in (train, val)
    )
    y, y_val = (
        torch.tensor(((t.log_hours - center) / spread).to_numpy(), dtype=torch.float32)
        for t in (train, val)
    )
    print(f"{len(x)} training rows from {len(train_part)} tickets, {len(x_val)} validation rows")

    model = Regressor(len(columns), cfg.width)
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr, weight_decay=cfg.weight_decay)
    loader = DataLoader(TensorDataset(x, y), batch_size=cfg.batch_size, shuffle=True)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, cfg.epochs * len(loader))
    for epoch in range(cfg.epochs):
        model.train()
        total = 0.0
        for xb, yb in loader:
            loss = nn.functional.mse_loss(model(xb), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            total += loss.item() * len(xb)
        model.eval()
        with torch.no_grad():
            error = (model(x_val) - y_val) * spread
        if epoch % 4 == 3:
            print(
                f"epoch {epoch + 1:2d}  train {total / len(x):.3f}  "
                f"val rmse {error.square().mean().sqrt():.3f} log-hours"
            )


main()
