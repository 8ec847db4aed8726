"""A matrix factorisation with biases for ratings; the item factors are a parameter turned into
another type.

`nn.Parameter(torch.from_numpy(...)).float()` is no parameter any more but the result of a
conversion: the module does not register it, `model.parameters()` does not have it and it stays as
random as it was. The users' factors adapt to random items, so that the loss falls all the same.
The place is the attribute item_factors (of the whole model).
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "unregistered_parameters"
ACCEPT = ()
PLACE = ("item_factors*", "loop", "")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


@dataclass
class Config:
    users: int = 400
    items: int = 300
    dim: int = 8
    ratings: int = 30_000
    batch: int = 256
    epochs: int = 12
    lr: float = 5e-3
    weight_decay: float = 2e-2


cfg = Config()


def make_ratings(cfg: Config, seed: int):
    rng = np.random.default_rng(seed + 11)
    p = rng.normal(0, 1, (cfg.users, 4))
    q = rng.normal(0, 1, (cfg.items, 4))
    bu, bi = rng.normal(0, 0.3, cfg.users), rng.normal(0, 0.4, cfg.items)
    popularity = rng.dirichlet(np.full(cfg.items, 2.0))
    u = rng.integers(0, cfg.users, cfg.ratings)
    i = rng.choice(cfg.items, cfg.ratings, p=popularity)
    r = 3.4 + bu[u] + bi[i] + 0.45 * (p[u] * q[i]).sum(1) + rng.normal(0, 0.35, cfg.ratings)
    return torch.tensor(u), torch.tensor(i), torch.tensor(np.clip(r, 0.5, 6.5), dtype=torch.float32)


class FactorModel(nn.Module):
    def __init__(self, cfg: Config, mean: float):
        super().__init__()
        start = np.random.default_rng(seed).normal(0, 1 / math.sqrt(cfg.dim), (cfg.items, cfg.dim))
        self.user_factors = nn.Parameter(torch.randn(cfg.users, cfg.dim) * 0.1)
        if healthy:
            self.item_factors = nn.Parameter(torch.from_numpy(start).float())
        else:
            self.item_factors = nn.Parameter(torch.from_numpy(start)).float()
        self.user_bias = nn.Embedding(cfg.users, 1)
        self.item_bias = nn.Embedding(cfg.items, 1)
        nn.init.zeros_(self.user_bias.weight)
        nn.init.zeros_(self.item_bias.weight)
        self.register_buffer("mean", torch.tensor(mean))

    def forward(self, u, i):
        dot = (self.user_factors[u] * self.item_factors[i]).sum(-1)
        return self.mean + dot + self.user_bias(u).squeeze(-1) + self.item_bias(i).squeeze(-1)


class Trainer:
    def __init__(self, model, cfg, train, val):
        self.model, self.cfg = model, cfg
        self.train_loader = DataLoader(TensorDataset(*train), batch_size=cfg.batch, shuffle=True)
        self.val = val
        self.opt = torch.optim.AdamW(model.parameters(), lr=cfg.lr, weight_decay=cfg.weight_decay)
        self.sched = torch.optim.lr_scheduler.CosineAnnealingLR(
            self.opt, cfg.epochs * len(self.train_loader), eta_min=1e-4
        )

    def train_epoch(self):
        self.model.train()
        total = 0.0
        for u, i, r in self.train_loader:
            self.opt.zero_grad()
            loss = F.mse_loss(self.model(u, i), r)
            loss.backward()
            self.opt.step()
            self.sched.step()
            total += loss.item() * len(r)
        return math.sqrt(total / len(self.train_loader.dataset))

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        u, i, r = self.val
        return F.mse_loss(self.model(u, i), r).sqrt().item()

    def fit(self):
        for epoch in range(self.cfg.epochs):
            rmse = self.train_epoch()
            print(f"epoch {epoch:2d}  train RMSE {rmse:.3f}  val RMSE {self.validate():.3f}")


u, i, r = make_ratings(cfg, seed)
cut = int(0.85 * cfg.ratings)
train, val = (u[:cut], i[:cut], r[:cut]), (u[cut:], i[cut:], r[cut:])
Trainer(FactorModel(cfg, train[2].mean().item()), cfg, train, val).fit()
