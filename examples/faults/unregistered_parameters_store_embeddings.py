"""Daily sales of 120 stores with entity embeddings; the embeddings are in a plain Python list.

`self.embeddings = [nn.Embedding(...), ...]` isn't a ModuleList, so `model.parameters()` has none
of the embeddings: they take part in every forward pass and get gradients, but stay as they were
drawn. The place is the list `embeddings` of the model.
"""

from dataclasses import dataclass

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "unregistered_parameters"
ACCEPT = ()
PLACE = ("embeddings*", "model", "optimizer", "")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


@dataclass
class Config:
    n: int = 8000
    cardinalities: tuple = (120, 7, 12)  # store, weekday, month
    dims: tuple = (5, 3, 3)
    batch_size: int = 128
    epochs: int = 25
    lr: float = 4e-3


def sales_table(cfg):
    r = np.random.default_rng(21 + seed)
    cats = np.stack([r.integers(0, c, cfg.n) for c in cfg.cardinalities], 1)
    store, weekday, month = cats.T
    level, promo_effect = r.normal(0, 0.5, 120), r.normal(0.3, 0.2, 120)
    kind = r.integers(0, 3, 120)
    week = r.normal(0, 0.3, (3, 7))
    promo, distance = r.integers(0, 2, cfg.n), r.gamma(2, 2, cfg.n)
    log_sales = 8.5 + level[store] + week[kind[store], weekday] + promo_effect[store] * promo
    log_sales += 0.2 * np.cos(month * 0.52) - 0.05 * distance + r.normal(0, 0.12, cfg.n)
    return cats, np.stack([promo, distance], 1), log_sales


class StoreNet(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        tables = [nn.Embedding(c, d) for c, d in zip(cfg.cardinalities, cfg.dims, strict=True)]
        self.embeddings = nn.ModuleList(tables) if healthy else tables
        self.trunk = nn.Sequential(
            nn.Linear(sum(cfg.dims) + 2, 48), nn.ReLU(), nn.Linear(48, 24), nn.ReLU()
        )
        self.head = nn.Linear(24, 1)

    def forward(self, cats, nums):
        parts = [table(cats[:, i]) for i, table in enumerate(self.embeddings)]
        return self.head(self.trunk(torch.cat([*parts, nums], 1))).squeeze(1)


@torch.no_grad()
def rmspe(model, cats, nums, log_sales, center, scale):
    model.eval()
    predicted = (model(cats, nums) * scale + center).exp()
    return (predicted / log_sales.exp() - 1).pow(2).mean().sqrt().item()


def main(cfg):
    cats, nums, log_sales = sales_table(cfg)
    cut = int(0.8 * cfg.n)
    nums = (nums - nums[:cut].mean(0)) / nums[:cut].std(0)
    cats = torch.tensor(cats)
    nums, log_sales = (torch.tensor(a, dtype=torch.float32) for a in (nums, log_sales))
    center, scale = log_sales[:cut].mean(), log_sales[:cut].std()
    target = (log_sales - center) / scale
    loader = DataLoader(
        TensorDataset(cats[:cut], nums[:cut], target[:cut]), cfg.batch_size, shuffle=True
    )
    model = StoreNet(cfg)
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, cfg.epochs)
    for epoch in range(cfg.epochs):
        model.train()
        losses = []
        for c, x, y in loader:
            loss = nn.functional.mse_loss(model(c, x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        scheduler.step()
        score = rmspe(model, cats[cut:], nums[cut:], log_sales[cut:], center, scale)
        print(f"epoch {epoch:2d}  train mse {np.mean(losses):.4f}  val rmspe {score:.4f}")


main(Config())
