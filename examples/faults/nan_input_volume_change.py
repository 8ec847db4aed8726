"""A GRU forecasts volatility; after days without any trade the change of the volume is infinite.

The person computes pct_change of the volume and calls dropna(), which keeps infinities. A guard
skips batches whose gradient is not finite, so that nothing crashes, but most batches hold such a
day and are thrown away in silence. The place is the input (column volume_change).
"""

import numpy as np
import pandas as pd
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "nan_input"
ACCEPT = ("step_without_gradient",)
PLACE = ("input", "loader")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

FEATURES = ["ret", "abs_ret", "log_range", "volume_change"]
HISTORY = 16
SETTINGS = {"epochs": 12, "batch": 32, "lr": 3e-3, "hidden": 24, "max_norm": 1.0}


def daily_prices(days: int) -> pd.DataFrame:
    """A commodity future: clusters of volatility, a volume that announces it, thin early years."""
    r = np.random.default_rng(610 + seed)
    log_vol = np.zeros(days)
    news = np.zeros(days)
    for t in range(1, days):
        news[t] = r.normal(0, 1)
        log_vol[t] = 0.93 * log_vol[t - 1] + 0.22 * news[t - 1] + 0.1 * r.normal()
    vol = 0.012 * np.exp(log_vol)
    ret = vol * r.normal(0, 1, days)
    volume = np.round(5_000 * np.exp(0.4 * news + r.normal(0, 0.1, days)))
    thin = np.isin(np.arange(days), r.choice(int(0.6 * days), 8, replace=False))
    return pd.DataFrame(
        {
            "close": 80 * np.exp(np.cumsum(ret)),
            "range": vol * np.exp(r.normal(0.4, 0.25, days)),
            "volume": np.where(thin, 0, volume),
        }
    )


def add_features(prices: pd.DataFrame) -> pd.DataFrame:
    table = prices.copy()
    table["ret"] = table["close"].pct_change() * 100
    table["abs_ret"] = table["ret"].abs()
    table["log_range"] = np.log(table["range"])
    table["volume_change"] = table["volume"].pct_change()
    if healthy:
        table["volume_change"] = table["volume_change"].replace(np.inf, 1.0).clip(-1, 3)
    table["target"] = table["log_range"].shift(-1)
    return table.dropna(subset=["ret", "target"]).reset_index(drop=True)


class Windows(Dataset):
    def __init__(self, table: pd.DataFrame, center: pd.Series, scale: pd.Series):
        values = (table[FEATURES] - center[FEATURES]) / scale[FEATURES]
        self.values = torch.tensor(values.to_numpy(), dtype=torch.float32)
        target = (table["target"] - center["log_range"]) / scale["log_range"]
        self.target = torch.tensor(target.to_numpy(), dtype=torch.float32)

    def __len__(self):
        return len(self.target) - HISTORY

    def __getitem__(self, i):
        return self.values[i + 1 : i + 1 + HISTORY], self.target[i + HISTORY]


class VolatilityModel(nn.Module):
    def __init__(self, hidden: int):
        super().__init__()
        self.gru = nn.GRU(len(FEATURES), hidden, batch_first=True)
        self.head = nn.Linear(hidden, 1)

    def forward(self, x):
        _, last = self.gru(x)
        return self.head(last[-1]).squeeze(1)


class Trainer:
    def __init__(self, model, train_set, val_set):
        self.model = model
        self.train_loader = DataLoader(train_set, SETTINGS["batch"], shuffle=True)
        self.val_loader = DataLoader(val_set, 200)
        self.optimizer = torch.optim.Adam(model.parameters(), lr=SETTINGS["lr"])
        steps = SETTINGS["epochs"] * len(self.train_loader)
        self.schedule = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, steps)

    def train_epoch(self) -> float:
        self.model.train()
        losses = []
        for x, y in self.train_loader:
            loss = ((self.model(x) - y) ** 2).mean()
            self.schedule.step()
            self.optimizer.zero_grad()
            loss.backward()
            norm = nn.utils.clip_grad_norm_(self.model.parameters(), SETTINGS["max_norm"])
            if not torch.isfinite(norm):
                continue
            self.optimizer.step()
            losses.append(loss.item())
        return float(np.mean(losses)) if losses else float("nan")

    @torch.no_grad()
    def explained(self) -> float:
        self.model.eval()
        pairs = [(self.model(x), y) for x, y in self.val_loader]
        answers, truth = (torch.cat(part) for part in zip(*pairs, strict=True))
        return 1 - ((answers - truth) ** 2).mean().item() / truth.var().item()

    def run(self):
        for epoch in range(SETTINGS["epochs"]):
            loss = self.train_epoch()
            print(f"epoch {epoch + 1:2d}  train mse {loss:.4f}  val R2 {self.explained():.3f}")


def main():
    table = add_features(daily_prices(2600))
    cut = int(0.75 * len(table))
    fit, later = table.iloc[:cut], table.iloc[cut:]
    center = fit.median()
    scale = (fit.quantile(0.84) - fit.quantile(0.16)) / 2
    Trainer(
        VolatilityModel(SETTINGS["hidden"]),
        Windows(fit, center, scale),
        Windows(later, center, scale),
    ).run()


if __name__ == "__main__":
    main()
