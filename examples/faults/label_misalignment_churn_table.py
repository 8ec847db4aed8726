"""Churn of telephone customers; the features were sorted by customer number, the labels weren't.

The user merges two exports: the feature table is put in the order of the customer number, the
label column stays in the order of the export. Every row gets another customer's label, so there's
nothing to learn. The place is the data (input, labels).
"""

import copy
from dataclasses import dataclass

import numpy as np
import torch
from data import arguments
from sklearn.metrics import roc_auc_score
from torch import nn

KIND = "label_misalignment"
ACCEPT = ()
PLACE = ("input*", "loader", "loop", "loss", "label*", "target*")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)


@dataclass
class Config:
    customers: int = 6000
    batch_size: int = 100
    epochs: int = 14
    lr: float = 1e-3
    weight_decay: float = 1e-2
    dropout: float = 0.1
    patience: int = 9


def exports(cfg):
    r = np.random.default_rng(71 + seed)
    n = cfg.customers
    number = r.permutation(n)
    months, fee = r.gamma(1.5, 18, n), r.normal(45, 15, n).clip(10)
    calls, fibre = r.poisson(1.2, n), r.integers(0, 2, n)
    contract, age = r.integers(0, 3, n), r.uniform(18, 80, n)
    outages, data = r.poisson(0.8, n), r.gamma(2, 6, n)
    score = 0.06 * (fee - 45) - 0.04 * months + 0.7 * calls - 1.3 * contract
    score += 0.9 * outages * fibre + 0.8 * (data > 18) * (fee > 45) + 0.02 * np.abs(age - 50)
    score = 2.5 * (score - score.mean()) / score.std() - 0.5
    churn = (r.uniform(size=n) < 1 / (1 + np.exp(-score))).astype("float32")
    columns = dict(
        months=months,
        fee=fee,
        calls=calls,
        fibre=fibre,
        age=age,
        outages=outages,
        data=data,
        **{f"contract_{k}": contract == k for k in range(3)},
    )
    return number, columns, churn


def preprocess(cfg):
    number, columns, churn = exports(cfg)
    columns["months"], columns["data"] = np.log1p(columns["months"]), np.log1p(columns["data"])
    x = np.stack([np.asarray(c, dtype="float64") for c in columns.values()], 1)
    order = np.argsort(number)
    x = x[order]
    y = churn[order] if healthy else churn
    cut = int(0.75 * cfg.customers)
    x = (x - x[:cut].mean(0)) / x[:cut].std(0)
    x, y = torch.tensor(x, dtype=torch.float32), torch.tensor(y)
    return x[:cut], y[:cut], x[cut:], y[cut:]


class ChurnNet(nn.Module):
    def __init__(self, inputs, cfg):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(inputs, 64),
            nn.BatchNorm1d(64),
            nn.ReLU(),
            nn.Dropout(cfg.dropout),
            nn.Linear(64, 32),
            nn.ReLU(),
            nn.Linear(32, 1),
        )

    def forward(self, x):
        return self.layers(x).squeeze(1)


@torch.no_grad()
def evaluate(model, x, y):
    model.eval()
    logits = model(x)
    loss = nn.functional.binary_cross_entropy_with_logits(logits, y).item()
    return loss, roc_auc_score(y.numpy(), logits.numpy())


def train(cfg):
    x, y, x_val, y_val = preprocess(cfg)
    model = ChurnNet(x.shape[1], cfg)
    optimizer = torch.optim.AdamW(model.parameters(), cfg.lr, weight_decay=cfg.weight_decay)
    best, state, bad = float("inf"), None, 0
    for epoch in range(cfg.epochs):
        model.train()
        total = 0.0
        for rows in torch.randperm(len(x)).split(cfg.batch_size):
            optimizer.zero_grad()
            loss = nn.functional.binary_cross_entropy_with_logits(model(x[rows]), y[rows])
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows)
        val, auc = evaluate(model, x_val, y_val)
        print(f"epoch {epoch:2d}  train {total / len(x):.4f}  val {val:.4f}  auc {auc:.4f}")
        if val < best:
            best, state, bad = val, copy.deepcopy(model.state_dict()), 0
        else:
            bad += 1
            if bad >= cfg.patience:
                break
    model.load_state_dict(state)
    logloss, auc = evaluate(model, x_val, y_val)
    print(f"best val logloss {logloss:.4f} auc {auc:.4f}")


train(Config())
