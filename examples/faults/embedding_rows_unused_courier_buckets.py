"""A delivery-time model sorts z-scores into buckets with raw edges, so most buckets stay unused.

Distance, hour and basket value get an embedding per bucket, but the edges are kilometres, hours and
euros while the columns are z-scores: nearly all rows fall into the first two or three buckets and
the rest of each table is never used. The place is the input of the bucket embeddings.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "embedding_rows_unused"
ACCEPT = ()
PLACE = ("tables*", "input")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)


EDGES = {
    "distance_km": np.arange(1.0, 15.0, 0.5),
    "hour": np.arange(9.0, 23.0, 0.5),
    "basket_eur": np.arange(15.0, 110.0, 5.0),
}


@dataclass(frozen=True)
class Config:
    dim: int = 8
    hidden: int = 48
    batch_size: int = 64
    epochs: int = 12
    lr: float = 4e-3


def orders(n: int, r: np.random.Generator) -> pd.DataFrame:
    spans = {"distance_km": (0.5, 15.5), "hour": (8.5, 23.5), "basket_eur": (10, 114)}
    frame = pd.DataFrame({name: r.uniform(*span, n) for name, span in spans.items()})
    rush = np.exp(-((frame.hour - 12.5) ** 2) / 1.5) + np.exp(-((frame.hour - 19) ** 2) / 2)
    bridge = 6 * (frame.distance_km > 7)
    kitchen = 5 * np.sin(frame.basket_eur / 12)
    minutes = 8 + 2.2 * frame.distance_km * (1 + 0.6 * rush) + 9 * rush + bridge + kitchen
    frame["minutes"] = minutes + r.normal(0, 2.5, n)
    return frame


def bucketed(frame: pd.DataFrame, train: pd.DataFrame) -> torch.Tensor:
    columns = []
    for name, edges in EDGES.items():
        values = frame[name].to_numpy()
        if not healthy:
            values = (values - train[name].mean()) / train[name].std()
        columns.append(np.digitize(values, edges))
    return torch.from_numpy(np.stack(columns, 1))


class DeliveryTime(nn.Module):
    def __init__(self, cfg: Config) -> None:
        super().__init__()
        tables = [nn.Embedding(len(edges) + 1, cfg.dim) for edges in EDGES.values()]
        self.tables = nn.ModuleList(tables)
        self.head = nn.Sequential(
            nn.Linear(cfg.dim * len(EDGES), cfg.hidden), nn.ReLU(), nn.Linear(cfg.hidden, 1)
        )

    def forward(self, buckets: torch.Tensor) -> torch.Tensor:
        parts = [table(buckets[:, i]) for i, table in enumerate(self.tables)]
        return self.head(torch.cat(parts, 1)).squeeze(1)


def main() -> None:
    cfg, r = Config(), np.random.default_rng(seed)
    train, val = orders(4000, r), orders(1000, r)
    mean, std = train.minutes.mean(), train.minutes.std()
    y, y_val = (torch.tensor((f.minutes - mean).to_numpy() / std).float() for f in (train, val))
    x, x_val = bucketed(train, train), bucketed(val, train)
    loader = DataLoader(TensorDataset(x, y), cfg.batch_size, shuffle=True)
    model, loss_fn = DeliveryTime(cfg), nn.MSELoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    steps = cfg.epochs * len(loader)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, cfg.lr, steps)
    for epoch in range(cfg.epochs):
        for buckets, minutes in loader:
            loss = loss_fn(model(buckets), minutes)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
        with torch.no_grad():
            error = std * (model(x_val) - y_val).abs().mean().item()
        print(f"epoch {epoch}: loss {loss.item():.3f}, held-out error {error:.2f} minutes")


main()
