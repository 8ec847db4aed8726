"""Default risk of consumer loans by an MLP; Adam is given eps=1.0.

The user copied the optimizer line of a vision recipe ("epsilon 1.0 for Inception"). With
gradients of some hundredths, the denominator is nearly 1 for every parameter, so Adam's steps are
a hundredth of what the rate promises. The place is the optimizer.
"""

import copy
from dataclasses import dataclass

import numpy as np
import torch
from data import arguments
from sklearn.metrics import roc_auc_score
from torch import nn

KIND = "bad_optimizer_settings"
ACCEPT = ()
PLACE = ("optimizer",)
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


@dataclass
class Config:
    n: int = 6000
    hidden: int = 48
    batch_size: int = 64
    epochs: int = 14
    patience: int = 5
    lr: float = 1e-3
    eps: float = 1e-8 if healthy else 1.0


def load_loans(cfg):
    r = np.random.default_rng(10 + seed)
    income = r.lognormal(10.3, 0.5, cfg.n)
    amount = r.lognormal(9.2, 0.7, cfg.n)
    years = r.integers(1, 8, cfg.n)
    late = r.poisson(0.6, cfg.n)
    age = r.uniform(20, 70, cfg.n)
    tenure = r.gamma(2, 3, cfg.n)
    rate = r.uniform(2, 14, cfg.n)
    cards = r.poisson(2, cfg.n)
    owner = r.integers(0, 2, cfg.n)
    burden = amount / years / income
    score = 2.2 * np.log(burden + 0.02) + 0.8 * late + 0.12 * rate - 0.12 * tenure
    score += 0.9 * (age < 27) + 0.5 * (cards > 4) * (late > 0) - 0.8 * owner * (age > 40)
    score = (score - score.mean()) / score.std() * 2.2 - 1.4
    y = (r.uniform(size=cfg.n) < 1 / (1 + np.exp(-score))).astype("float32")
    x = np.stack([np.log(income), np.log(amount), years, late, age, tenure, rate, cards, owner], 1)
    order = r.permutation(cfg.n)
    tr, va = order[: int(0.75 * cfg.n)], order[int(0.75 * cfg.n) :]
    x = ((x - x[tr].mean(0)) / x[tr].std(0)).astype("float32")
    return [torch.tensor(a) for a in (x[tr], y[tr], x[va], y[va])]


def build(width, hidden):
    return nn.Sequential(
        nn.Linear(width, hidden),
        nn.ReLU(),
        nn.Dropout(0.1),
        nn.Linear(hidden, hidden),
        nn.ReLU(),
        nn.Linear(hidden, 1),
        nn.Flatten(0),
    )


@torch.no_grad()
def evaluate(model, x, y):
    model.eval()
    logits = model(x)
    loss = nn.functional.binary_cross_entropy_with_logits(logits, y).item()
    return loss, roc_auc_score(y.numpy(), logits.numpy())


def fit(cfg):
    x, y, x_val, y_val = load_loans(cfg)
    model = build(x.shape[1], cfg.hidden)
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr, eps=cfg.eps)
    best, best_state, bad = 9.0, None, 0
    for epoch in range(cfg.epochs):
        model.train()
        running, seen = 0.0, 0
        for rows in torch.randperm(len(x)).split(cfg.batch_size):
            optimizer.zero_grad()
            loss = nn.functional.binary_cross_entropy_with_logits(model(x[rows]), y[rows])
            loss.backward()
            optimizer.step()
            running, seen = running + loss.item() * len(rows), seen + len(rows)
        val_loss, auc = evaluate(model, x_val, y_val)
        print(f"[{epoch:02d}] train {running / seen:.4f}  val {val_loss:.4f}  auc {auc:.4f}")
        if val_loss < best:
            best, best_state, bad = val_loss, copy.deepcopy(model.state_dict()), 0
        else:
            bad += 1
            if bad == cfg.patience:
                break
    model.load_state_dict(best_state)
    val_loss, auc = evaluate(model, x_val, y_val)
    print(f"final val logloss {val_loss:.4f}  auc {auc:.4f}")


fit(Config())
