"""Probability of a motor claim, trained in float16 autocast without a gradient scaler.

The rows carry recency weights that sum to 1 over the table, so the loss is about 10^-4 and the
gradient of one row's logit about 10^-7: in float16 almost everything that flows back through the
hidden layers is rounded to 0. With a GradScaler the same training works; the user switched
autocast on and left it out. The place is the backward pass of the loop (hidden layers body.*).
"""

import copy
from dataclasses import dataclass

import numpy as np
import torch
from data import arguments
from sklearn.metrics import roc_auc_score
from torch import nn
from torch.nn import functional as F

KIND = "gradient_underflow"
ACCEPT = ()
PLACE = ("loop", "loss", "optimizer", "body*", "head*")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)


@dataclass
class Config:
    n: int = 12800
    batch_size: int = 1024
    epochs: int = 24
    lr: float = 4e-3
    patience: int = 8
    amp: bool = True


def policies(cfg):
    r = np.random.default_rng(40 + seed)
    age, years = r.uniform(18, 85, cfg.n), r.uniform(0, 20, cfg.n)
    power, km, value = r.normal(100, 30, cfg.n), r.gamma(3, 5, cfg.n), r.lognormal(9.5, 0.6, cfg.n)
    city, night, bonus = r.integers(0, 2, cfg.n), r.uniform(0, 1, cfg.n), r.integers(0, 10, cfg.n)
    risk = ((age - 48) / 18) ** 2 + 0.9 * (power - 100) / 30 * np.where(age < 35, 1, -0.4)
    risk = risk + 0.08 * km * (0.5 + night) + 0.7 * city * np.cos(years / 3) - 0.15 * bonus
    risk = 2.4 * (risk - risk.mean()) / risk.std() - 0.8
    y = r.uniform(size=cfg.n) < 1 / (1 + np.exp(-risk))
    x = np.stack([age, years, power, km, np.log(value), city, night, bonus], 1)
    weight = 0.5 ** (r.uniform(0, 2, cfg.n))  # half per year
    return x, y.astype("float64"), weight


class ClaimNet(nn.Module):
    def __init__(self, inputs):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(inputs, 48),
            nn.ReLU(),
            nn.Linear(48, 48),
            nn.ReLU(),
            nn.Linear(48, 32),
            nn.ReLU(),
        )
        self.head = nn.Linear(32, 1)

    def forward(self, x):
        return self.head(self.body(x)).squeeze(1)


@torch.no_grad()
def evaluate(model, x, y):
    model.eval()
    logits = model(x)
    return F.binary_cross_entropy_with_logits(logits, y).item(), roc_auc_score(y, logits)


def fit(cfg):
    x, y, weight = policies(cfg)
    cut = int(0.8 * cfg.n)
    x = (x - x[:cut].mean(0)) / x[:cut].std(0)
    weight = weight / weight[:cut].sum()
    x, y, weight = (torch.tensor(a, dtype=torch.float32) for a in (x, y, weight))
    model = ClaimNet(x.shape[1])
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    scaler = torch.amp.GradScaler("cpu", enabled=healthy)
    best, state, bad = float("inf"), None, 0
    for epoch in range(cfg.epochs):
        model.train()
        total = 0.0
        for rows in torch.randperm(cut).split(cfg.batch_size):
            with torch.autocast("cpu", dtype=torch.float16, enabled=cfg.amp):
                logits = model(x[rows])
            each = F.binary_cross_entropy_with_logits(logits.float(), y[rows], reduction="none")
            loss = (weight[rows] * each).mean()
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            total += loss.item() * len(rows)
        val, auc = evaluate(model, x[cut:], y[cut:])
        print(f"epoch {epoch:2d}  train {total:.4f}  val logloss {val:.4f}  auc {auc:.4f}")
        if val < best:
            best, state, bad = val, copy.deepcopy(model.state_dict()), 0
        else:
            bad += 1
        if bad >= cfg.patience:
            break
    model.load_state_dict(state)
    logloss, auc = evaluate(model, x[cut:], y[cut:])
    print(f"best val logloss {logloss:.4f}  auc {auc:.4f}")


fit(Config())
