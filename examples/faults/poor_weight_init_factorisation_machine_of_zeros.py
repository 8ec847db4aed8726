"""Clicks on advertisements by a factorisation machine: the factors begin at zero, like the weights.

The gradient of each factor is the sum of the others, which is zero as well: the interactions never
come to life, and a logistic regression is left. The place is the factors. The twin begins with a
normal distribution of 0.05.
"""

import argparse

import torch
from data import arguments
from torch import nn

KIND = "poor_weight_init"
ACCEPT = ("vanishing_gradient",)
PLACE = ("factors",)
SILENT = True
EXACT = True
EARLY = True

FIELDS = {"site": 40, "ad": 60, "device": 5, "hour": 24, "country": 20}


class FactorisationMachine(nn.Module):
    """w0 + sum w_i + sum <v_i, v_j>, for one feature in each field."""

    def __init__(self, sizes, rank, init_std):
        super().__init__()
        offsets = torch.tensor([0, *sizes[:-1]]).cumsum(0)
        self.register_buffer("offsets", offsets)
        self.bias = nn.Parameter(torch.zeros(1))
        self.linear = nn.Embedding(sum(sizes), 1)
        self.factors = nn.Embedding(sum(sizes), rank)
        nn.init.zeros_(self.linear.weight)
        if init_std:
            nn.init.normal_(self.factors.weight, std=init_std)
        else:
            nn.init.zeros_(self.factors.weight)

    def forward(self, x):
        x = x + self.offsets
        first = self.linear(x).sum(1).squeeze(1)
        v = self.factors(x)
        second = 0.5 * (v.sum(1).square() - v.square().sum(1)).sum(1)
        return self.bias + first + second


def clicks(n, g):
    sizes = list(FIELDS.values())
    x = torch.stack([torch.randint(0, size, (n,), generator=g) for size in sizes], 1)
    tables = torch.Generator().manual_seed(77)
    main = [0.4 * torch.randn(size, generator=tables) for size in sizes]
    topic = [torch.randn(size, 3, generator=tables) for size in sizes]
    logit = -1.2 + sum(table[x[:, i]] for i, table in enumerate(main))
    logit = logit + 0.9 * (topic[0][x[:, 0]] * topic[1][x[:, 1]]).sum(1)
    logit = logit + 0.5 * (topic[1][x[:, 1]] * topic[4][x[:, 4]]).sum(1)
    return x, (torch.rand(n, generator=g) < torch.sigmoid(logit)).float()


def auc(score, click):
    rank = score.argsort().argsort().float() + 1
    positive = click.sum()
    area = rank[click == 1].sum() - positive * (positive + 1) / 2
    return (area / (positive * (len(click) - positive))).item()


def train(model, config, data, held_out):
    x, click = data
    optimizer = torch.optim.Adagrad(model.parameters(), lr=config.lr)
    criterion = nn.BCEWithLogitsLoss()
    for epoch in range(config.epochs):
        for rows in torch.randperm(len(x)).split(config.batch):
            loss = criterion(model(x[rows]), click[rows])
            loss = loss + config.decay * model.factors(x[rows]).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            score = model(held_out[0])
            held = criterion(score, held_out[1]).item()
        print(
            f"epoch {epoch}: loss {loss.item():.4f}, held out {held:.4f}, "
            f"auc {auc(score, held_out[1]):.3f}"
        )


if __name__ == "__main__":
    healthy, seed = arguments(__doc__)
    config = argparse.Namespace(lr=0.1, batch=256, epochs=5, decay=0.02, rank=6)
    g = torch.Generator().manual_seed(seed)
    fm = FactorisationMachine(list(FIELDS.values()), config.rank, 0.05 if healthy else 0.0)
    train(fm, config, clicks(24_000, g), clicks(6000, g))
