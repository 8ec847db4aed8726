"""Ratings of recipes by cooks: early stopping gives up while the model still learns.

The watcher asks for a gain of 0.05 in the validation loss and has a patience of one epoch. In a
factorisation, whose loss falls slowly but for long, the gain of one epoch is soon a few
hundredths, and the run is over before it has well begun. Such settings are copied from a project
with another scale. The place is the loop: the early stopping on the validation loss. The twin has
a minimal gain of 0.0001 and a patience of five.
"""

import copy
from dataclasses import dataclass

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "stopped_too_early"
ACCEPT = ()
PLACE = ("loop", "stopper")
SILENT = False
EXACT = False
EARLY = True


@dataclass
class HParams:
    cooks: int = 150
    recipes: int = 120
    rank: int = 8
    lr: float = 3e-3
    weight_decay: float = 2e-3
    batch_size: int = 256
    max_epochs: int = 40
    patience: int = 5
    min_delta: float = 1e-4


class EarlyStopping:
    def __init__(self, patience, min_delta):
        self.patience, self.min_delta = patience, min_delta
        self.best, self.bad_epochs, self.state = float("inf"), 0, None

    def step(self, value, model):
        if value < self.best - self.min_delta:
            self.best, self.bad_epochs = value, 0
            self.state = copy.deepcopy(model.state_dict())
        else:
            self.bad_epochs += 1
        return self.bad_epochs >= self.patience


class Factors(nn.Module):
    def __init__(self, hp, mean):
        super().__init__()
        self.cook = nn.Embedding(hp.cooks, hp.rank)
        self.recipe = nn.Embedding(hp.recipes, hp.rank)
        self.cook_bias = nn.Embedding(hp.cooks, 1)
        self.recipe_bias = nn.Embedding(hp.recipes, 1)
        self.register_buffer("mean", torch.tensor(mean))
        for table in (self.cook, self.recipe):
            nn.init.normal_(table.weight, std=0.1)
        for table in (self.cook_bias, self.recipe_bias):
            nn.init.zeros_(table.weight)

    def forward(self, cook, recipe):
        taste = (self.cook(cook) * self.recipe(recipe)).sum(-1)
        return self.mean + self.cook_bias(cook)[:, 0] + self.recipe_bias(recipe)[:, 0] + taste


def make_ratings(hp, seed, n=9000):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(0, 0.6, (hp.cooks, 3)), rng.normal(0, 0.6, (hp.recipes, 3))
    mild, good = rng.normal(0, 0.4, hp.cooks), rng.normal(0, 0.5, hp.recipes)
    pairs = rng.choice(hp.cooks * hp.recipes, n, replace=False)
    cook, recipe = pairs // hp.recipes, pairs % hp.recipes
    rating = 3.6 + mild[cook] + good[recipe] + (a[cook] * b[recipe]).sum(1)
    rating = np.clip(np.round(2 * (rating + rng.normal(0, 0.3, n))) / 2, 0.5, 5)
    return torch.tensor(cook), torch.tensor(recipe), torch.tensor(rating, dtype=torch.float32)


def main():
    healthy, seed = arguments(__doc__)
    hp = HParams() if healthy else HParams(patience=1, min_delta=0.05)
    cook, recipe, rating = make_ratings(hp, seed)
    split = 7500
    model = Factors(hp, rating[:split].mean().item())
    optimizer = torch.optim.AdamW(model.parameters(), lr=hp.lr, weight_decay=hp.weight_decay)
    stopper = EarlyStopping(hp.patience, hp.min_delta)
    criterion = nn.MSELoss()

    for epoch in range(1, hp.max_epochs + 1):
        model.train()
        total = 0.0
        for rows in torch.randperm(split).split(hp.batch_size):
            loss = criterion(model(cook[rows], recipe[rows]), rating[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows)
        model.eval()
        with torch.no_grad():
            val = criterion(model(cook[split:], recipe[split:]), rating[split:]).item()
        if epoch % 5 == 0 or epoch <= 3:
            print(f"epoch {epoch:02d} train_mse={total / split:.4f} val_mse={val:.4f}")
        if stopper.step(val, model):
            print(f"early stopping at epoch {epoch}")
            break
    model.load_state_dict(stopper.state)
    print(f"best val_mse={stopper.best:.4f}, rmse={stopper.best**0.5:.3f} stars")


if __name__ == "__main__":
    main()
