"""Matrix factorisation of film ratings with 48 factors and no decay, which learns noise by heart.

The person followed a tutorial for a large catalogue: many factors and hundreds of passes, with the
optimizer's weight decay left at its default of zero. Each user has some twenty ratings, fewer than
factors, so the training error falls far under the noise. The place is the model and its optimizer.
"""

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "overfit"
ACCEPT = ()
PLACE = ("model", "loss", "loop", "optimizer", "*factors*")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

USERS, FILMS, RATINGS = 300, 150, 8000
SETTINGS = {
    "factors": 4 if healthy else 48,
    "weight_decay": 1e-4 if healthy else 0.0,
    "lr": 5e-3,
    "epochs": 30,
    "batch": 256,
}


def make_ratings(rng):
    taste = rng.normal(0, 1, (USERS, 3))
    style = rng.normal(0, 1, (FILMS, 3))
    kindness = rng.normal(0, 0.35, USERS)
    quality = rng.normal(0, 0.45, FILMS)
    chosen = rng.permutation(USERS * FILMS)[:RATINGS]
    user, film = chosen // FILMS, chosen % FILMS
    liking = 0.4 * (taste[user] * style[film]).sum(1)
    stars = 3.4 + kindness[user] + quality[film] + liking + rng.normal(0, 0.6, RATINGS)
    to_tensor = torch.from_numpy
    return to_tensor(user), to_tensor(film), to_tensor(np.clip(stars, 0.5, 5)).float()


class Factorisation(nn.Module):
    def __init__(self, factors, mean):
        super().__init__()
        self.user_factors = nn.Embedding(USERS, factors)
        self.film_factors = nn.Embedding(FILMS, factors)
        self.user_bias = nn.Embedding(USERS, 1)
        self.film_bias = nn.Embedding(FILMS, 1)
        self.register_buffer("mean", mean)
        for table in (self.user_factors, self.film_factors):
            nn.init.normal_(table.weight, std=0.25)
        for table in (self.user_bias, self.film_bias):
            nn.init.zeros_(table.weight)

    def forward(self, user, film):
        match = (self.user_factors(user) * self.film_factors(film)).sum(1)
        return self.mean + match + (self.user_bias(user) + self.film_bias(film)).squeeze(1)


def rmse(model, part):
    model.eval()
    with torch.no_grad():
        return (model(part[0], part[1]) - part[2]).pow(2).mean().sqrt().item()


def main():
    user, film, stars = make_ratings(np.random.default_rng(seed))
    train = tuple(column[:6400] for column in (user, film, stars))
    val = tuple(column[6400:] for column in (user, film, stars))
    model = Factorisation(SETTINGS["factors"], train[2].mean())
    optimizer = torch.optim.Adam(
        model.parameters(), lr=SETTINGS["lr"], weight_decay=SETTINGS["weight_decay"]
    )
    history = []
    for epoch in range(SETTINGS["epochs"]):
        model.train()
        for rows in torch.randperm(len(train[0])).split(SETTINGS["batch"]):
            loss = nn.functional.mse_loss(model(train[0][rows], train[1][rows]), train[2][rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        history.append(rmse(model, val))
        if epoch % 3 == 2:
            print(f"epoch {epoch:2d} train {rmse(model, train):.3f} val rmse {history[-1]:.3f}")
    best = min(history)
    print(f"best val rmse {best:.3f} in epoch {history.index(best)}, last {history[-1]:.3f}")
    print(f"always the mean: {val[2].std():.3f}; the noise alone: 0.6")


main()
