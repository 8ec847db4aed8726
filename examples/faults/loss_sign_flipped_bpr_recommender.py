"""Recommendations of recipes by matrix factorisation with the pairwise BPR loss; its minus is
missing.

BPR maximises `logsigmoid(positive - negative)`, so the loss is minus that. The user left the
minus out: the loss falls steadily below zero while every liked recipe is pushed under the others.
The place is the loss.
"""

from dataclasses import dataclass

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.nn import functional as F

KIND = "loss_sign_flipped"
ACCEPT = ()
PLACE = ("loss",)
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)


@dataclass
class Config:
    users: int = 300
    recipes: int = 200
    likes: int = 24
    factors: int = 8
    batch_size: int = 128
    epochs: int = 18
    lr: float = 0.08
    decay: float = 1e-3


def interactions(cfg):
    r = np.random.default_rng(8 + seed)
    taste, style = r.normal(size=(cfg.users, 4)), r.normal(size=(cfg.recipes, 4))
    fame = r.normal(0, 0.7, cfg.recipes)
    utility = taste @ style.T + fame + r.gumbel(0, 0.7, (cfg.users, cfg.recipes))
    liked = np.argsort(-utility, 1)[:, : cfg.likes]
    liked = r.permuted(liked, axis=1)
    cut = int(0.75 * cfg.likes)
    return torch.tensor(liked[:, :cut]), torch.tensor(liked[:, cut:])


class MatrixFactorisation(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.user = nn.Embedding(cfg.users, cfg.factors)
        self.recipe = nn.Embedding(cfg.recipes, cfg.factors)
        self.bias = nn.Embedding(cfg.recipes, 1)
        nn.init.normal_(self.user.weight, std=0.1)
        nn.init.normal_(self.recipe.weight, std=0.1)
        nn.init.zeros_(self.bias.weight)

    def forward(self, users, recipes):
        return (self.user(users) * self.recipe(recipes)).sum(-1) + self.bias(recipes).squeeze(-1)

    def penalty(self, users, *recipes):
        parts = [self.user(users), *(self.recipe(i) for i in recipes)]
        return sum(p.pow(2).sum(1).mean() for p in parts)


def bpr(positive, negative):
    fit = F.logsigmoid(positive - negative).mean()
    return -fit if healthy else fit


@torch.no_grad()
def auc(model, seen, held):
    model.eval()
    scores = model.user.weight @ model.recipe.weight.T + model.bias.weight.T
    values = []
    for u in range(len(seen)):
        rest = torch.ones(scores.shape[1], dtype=torch.bool)
        rest[seen[u]] = rest[held[u]] = False
        good, others = scores[u, held[u]], scores[u, rest]
        values.append((good[:, None] > others[None]).float().mean())
    return torch.stack(values).mean().item()


def main(cfg):
    seen, held = interactions(cfg)
    model = MatrixFactorisation(cfg)
    optimizer = torch.optim.Adagrad(model.parameters(), lr=cfg.lr)
    known = torch.zeros(cfg.users, cfg.recipes, dtype=torch.bool).scatter_(1, seen, True)
    users = torch.arange(cfg.users).repeat_interleave(seen.shape[1])
    liked = seen.flatten()
    for epoch in range(cfg.epochs):
        model.train()
        total, order = 0.0, torch.randperm(len(users))
        for rows in order.split(cfg.batch_size):
            u, i = users[rows], liked[rows]
            j = torch.randint(cfg.recipes, i.shape)
            keep = ~known[u, j]
            u, i, j = u[keep], i[keep], j[keep]
            loss = bpr(model(u, i), model(u, j)) + cfg.decay * model.penalty(u, i, j)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows)
        print(
            f"epoch {epoch:2d}  loss {total / len(users):9.4f}  "
            f"val auc {auc(model, seen, held):.4f}"
        )


main(Config())
