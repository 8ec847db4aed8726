"""A fraud detector with 3 % positives.

Odd: a weighted sampler draws with replacement, so that the same few frauds come over and over and
half of each batch is positive, unlike the validation; gradients are accumulated over four micro-
batches, divided by four, and cleared once in four. The logits are corrected by the log-odds of
the sampling when validating. All of it is sound: average precision is far above the base rate.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments, standardise
from sklearn.metrics import average_precision_score
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

ODD = "A fraud detector with 3 % positives"
_, seed = arguments(__doc__)


@dataclass
class Config:
    n: int = 16000
    merchants: int = 150
    micro: int = 32
    accumulate: int = 4
    updates: int = 240
    lr: float = 2e-3
    every: int = 40


cfg = Config()


def payments(cfg, seed):
    r = np.random.default_rng(seed + 51)
    merchant = r.integers(0, cfg.merchants, cfg.n)
    risk = r.normal(0, 0.8, cfg.merchants)[merchant]
    amount, hour, age = r.lognormal(3, 1, cfg.n), r.uniform(0, 24, cfg.n), r.exponential(3, cfg.n)
    velocity, distance = r.poisson(1.2, cfg.n), r.gamma(1, 30, cfg.n)
    night = (hour < 5).astype(float)
    z = -6.6 + risk + 0.9 * (np.log(amount) - 3) * (1 + night) + 0.55 * velocity + 0.018 * distance
    z = z + 1.2 * night * (age < 1) + 1.2 * (age < 0.4)
    y = r.random(cfg.n) < 1 / (1 + np.exp(-z))
    x = np.stack(
        [
            np.log(amount),
            np.sin(hour / 24 * 6.283),
            np.cos(hour / 24 * 6.283),
            np.log1p(age),
            velocity,
            np.sqrt(distance),
        ],
        1,
    )
    return (
        torch.tensor(x, dtype=torch.float32),
        torch.tensor(merchant),
        torch.tensor(y, dtype=torch.float32),
    )


class FraudNet(nn.Module):
    def __init__(self, merchants):
        super().__init__()
        self.merchant = nn.Embedding(merchants, 4)
        self.body = nn.Sequential(
            nn.Linear(10, 48),
            nn.ReLU(),
            nn.Dropout(0.2),
            nn.Linear(48, 48),
            nn.ReLU(),
            nn.Dropout(0.2),
            nn.Linear(48, 1),
        )
        nn.init.normal_(self.merchant.weight, std=0.1)

    def forward(self, x, m):
        return self.body(torch.cat([x, self.merchant(m)], 1)).squeeze(1)


x, m, y = payments(cfg, seed)
cut = 12000
x_tr, x_va = standardise(x[:cut], x[cut:])
m_tr, m_va, y_tr, y_va = m[:cut], m[cut:], y[:cut], y[cut:]
base = y_tr.mean().item()
weights = torch.where(y_tr > 0, 0.5 / base, 0.5 / (1 - base))
sampler = WeightedRandomSampler(weights, cfg.micro * cfg.accumulate * cfg.updates, replacement=True)
loader = DataLoader(TensorDataset(x_tr, m_tr, y_tr), cfg.micro, sampler=sampler, num_workers=0)
prior = math.log(base / (1 - base))

model = FraudNet(cfg.merchants)
opt = torch.optim.AdamW(model.parameters(), lr=cfg.lr, weight_decay=0.05)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, cfg.updates)
running, update = 0.0, 0
print(f"base rate {base:.4f}")
for k, (xb, mb, yb) in enumerate(loader, 1):
    model.train()
    loss = F.binary_cross_entropy_with_logits(model(xb, mb), yb) / cfg.accumulate
    loss.backward()
    running += loss.item()
    if k % cfg.accumulate:
        continue
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    opt.step()
    sched.step()
    opt.zero_grad()
    update += 1
    if update % cfg.every == 0:
        model.eval()
        with torch.no_grad():
            z = model(x_va, m_va) + prior
        ap, nll = (
            average_precision_score(y_va, z),
            F.binary_cross_entropy_with_logits(z, y_va).item(),
        )
        print(f"update {update} train {running / cfg.every:.4f} | val nll {nll:.4f} AP {ap:.4f}")
        running = 0.0
