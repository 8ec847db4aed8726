"""A factorization machine whose table of factors is a plain tensor, not an nn.Parameter.

The person initialised the table with nn.init.normal_(torch.empty(...)).requires_grad_(), as in
code without modules. It gets gradients, but the module does not list it and the optimizer never
moves it; biases learn and the loss falls. The place is the attribute factors of the model.
"""

import torch
from data import arguments
from torch import nn

KIND = "unregistered_parameters"
ACCEPT = ("parameters_not_in_optimizer", "frozen_parameters")
PLACE = ("factors", "model", "optimizer")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

USERS, FILMS, DAYS, RANK = 150, 120, 7, 6


def ratings(count):
    taste, style = torch.randn(USERS, 3), torch.randn(FILMS, 3)
    mild, liked = 0.4 * torch.randn(USERS), 0.5 * torch.randn(FILMS)
    user, film = torch.randint(0, USERS, (count,)), torch.randint(0, FILMS, (count,))
    day = torch.randint(0, DAYS, (count,))
    stars = 3.2 + mild[user] + liked[film] + 0.2 * (day >= 5).float()
    stars = stars + 0.6 * (taste[user] * style[film]).sum(1) + 0.3 * torch.randn(count)
    fields = torch.stack([user, USERS + film, USERS + FILMS + day], dim=1)
    return fields, stars


class FactorizationMachine(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.offset = nn.Parameter(torch.zeros(1))
        self.linear = nn.Embedding(size, 1)
        nn.init.zeros_(self.linear.weight)
        table = nn.init.normal_(torch.empty(size, RANK), std=0.1)
        self.factors = nn.Parameter(table) if healthy else table.requires_grad_()

    def forward(self, fields):
        chosen = self.factors[fields]
        together = chosen.sum(1).pow(2) - chosen.pow(2).sum(1)
        return self.offset + self.linear(fields).sum((1, 2)) + 0.5 * together.sum(1)


class EarlyStopping:
    def __init__(self, patience=4):
        self.best, self.bad, self.patience = float("inf"), 0, patience

    def should_stop(self, value):
        if value < self.best - 1e-4:
            self.best, self.bad = value, 0
        else:
            self.bad += 1
        return self.bad >= self.patience


@torch.no_grad()
def rmse(model, fields, stars):
    model.eval()
    return (model(fields) - stars).pow(2).mean().sqrt().item()


def main():
    fields, stars = ratings(9000)
    mean, deviation = stars[:7000].mean(), stars[:7000].std()
    stars = (stars - mean) / deviation
    train, valid = slice(0, 7000), slice(7000, 8000)
    test = slice(8000, 9000)
    model = FactorizationMachine(USERS + FILMS + DAYS)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    stopping = EarlyStopping()
    for epoch in range(40):
        model.train()
        total = 0.0
        for rows in torch.randperm(7000).split(100):
            loss = (model(fields[train][rows]) - stars[train][rows]).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows)
        valid_rmse = rmse(model, fields[valid], stars[valid])
        if epoch % 3 == 0:
            print(f"epoch {epoch:2d}  train mse {total / 7000:.4f}  valid rmse {valid_rmse:.4f}")
        if stopping.should_stop(valid_rmse):
            print(f"stopped after epoch {epoch}")
            break
    print(f"test rmse {rmse(model, fields[test], stars[test]) * deviation.item():.3f} stars")


main()
