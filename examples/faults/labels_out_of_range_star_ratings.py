"""A film recommender learns with a binary cross entropy to which the star ratings, 1 to 5, are
given as they are, so the loss falls below zero without end.

The loss wants labels between 0 and 1 (liked or not). With a label of 5 it is the lower the larger
the score gets, even for the films people could not stand with their one star. The loss looks better
and better, and all scores grow. The place is the loss (its labels).
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from data import arguments
from sklearn.metrics import roc_auc_score
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

KIND = "labels_out_of_range"
ACCEPT = ()
PLACE = ("loss", "labels", "loader")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


@dataclass
class RatingConfig:
    viewers: int = 150
    films: int = 80
    dim: int = 6
    decay: float = 0.05
    lr: float = 0.01
    epochs: int = 10
    batch_size: int = 128


def ratings_table(config: RatingConfig, n: int) -> pd.DataFrame:
    rng = np.random.default_rng(7 + seed)
    taste, theme = rng.normal(size=(config.viewers, 3)), rng.normal(size=(config.films, 3))
    mood, fame = 0.5 * rng.normal(size=config.viewers), 0.7 * rng.normal(size=config.films)
    pair = rng.choice(config.viewers * config.films, n, replace=False)
    viewer, film = pair // config.films, pair % config.films
    score = (taste[viewer] * theme[film]).sum(1) + mood[viewer] + fame[film]
    stars = np.clip(np.round(3.2 + 0.9 * score + rng.normal(0, 0.5, n)), 1, 5).astype(int)
    return pd.DataFrame({"viewer": viewer, "film": film, "stars": stars})


class Ratings(Dataset):
    def __init__(self, table: pd.DataFrame) -> None:
        self.viewer = torch.tensor(table["viewer"].to_numpy())
        self.film = torch.tensor(table["film"].to_numpy())
        stars = torch.tensor(table["stars"].to_numpy())
        self.liked = (stars >= 4).float()
        self.label = self.liked if healthy else stars.float()

    def __len__(self) -> int:
        return len(self.viewer)

    def __getitem__(self, i: int) -> tuple[Tensor, Tensor, Tensor]:
        return self.viewer[i], self.film[i], self.label[i]


class FilmModel(nn.Module):
    def __init__(self, config: RatingConfig) -> None:
        super().__init__()
        self.viewers = nn.Embedding(config.viewers, config.dim)
        self.films = nn.Embedding(config.films, config.dim)
        self.fame = nn.Embedding(config.films, 1)
        self.mood = nn.Embedding(config.viewers, 1)
        for table in self.children():
            nn.init.normal_(table.weight, std=0.2)

    def forward(self, viewer: Tensor, film: Tensor) -> Tensor:
        match = (self.viewers(viewer) * self.films(film)).sum(1)
        return match + self.fame(film).squeeze(1) + self.mood(viewer).squeeze(1)


def main() -> None:
    config = RatingConfig()
    table = ratings_table(config, 6000)
    train, valid = Ratings(table[:4800]), Ratings(table[4800:])
    loader = DataLoader(train, config.batch_size, shuffle=True)
    model = FilmModel(config)
    optimizer = torch.optim.AdamW(model.parameters(), config.lr, weight_decay=config.decay)
    criterion = nn.BCEWithLogitsLoss()
    for epoch in range(config.epochs):
        total = 0.0
        for viewer, film, label in loader:
            loss = criterion(model(viewer, film), label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        with torch.no_grad():
            score = model(valid.viewer, valid.film)
        auc = roc_auc_score(valid.liked.numpy(), score.numpy())
        hits = ((score > 0) == (valid.liked > 0.5)).float().mean()
        mean = total / len(loader)
        print(f"epoch {epoch + 1:2d}  loss {mean:.3f}  accuracy {hits:.3f}  AUC {auc:.3f}")


main()
