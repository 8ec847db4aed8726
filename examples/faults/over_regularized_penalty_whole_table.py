"""Film ratings by matrix factorisation: the L2 penalty is taken over the whole tables.

The paper's penalty is on the factors of the ratings in the batch, averaged. In a tidy-up it became
one line over `parameters()`, a sum over all rows of all tables, with the same coefficient, so that
it is hundreds of times as strong and the factors die. The place is the loss (its penalty). The twin
penalises the factors looked up for the batch, per rating.
"""

from dataclasses import dataclass

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "over_regularized"
ACCEPT = ()
PLACE = ("loss*", "user.weight", "item.weight")
SILENT = False
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)


@dataclass
class Config:
    users: int = 400
    items: int = 250
    rank: int = 6
    ratings: int = 24000
    batch: int = 512
    epochs: int = 30
    lr: float = 0.01
    l2: float = 0.02


cfg = Config()
rng = np.random.default_rng(77 + seed)
taste = rng.normal(0, 1, (cfg.users, 3))
trait = rng.normal(0, 1, (cfg.items, 3))
mood, fame = rng.normal(0, 0.4, cfg.users), rng.normal(0, 0.5, cfg.items)
cells = rng.choice(cfg.users * cfg.items, cfg.ratings, replace=False)
u, i = cells // cfg.items, cells % cfg.items
score = 3.4 + mood[u] + fame[i] + 0.55 * (taste[u] * trait[i]).sum(1)
score = score + rng.normal(0, 0.35, cfg.ratings)
u, i, score = torch.tensor(u), torch.tensor(i), torch.tensor(score, dtype=torch.float32)
cut = int(cfg.ratings * 0.8)  # the cells are in random order already


class Factors(nn.Module):
    def __init__(self, c: Config, mean: float):
        super().__init__()
        self.user, self.item = nn.Embedding(c.users, c.rank), nn.Embedding(c.items, c.rank)
        self.user_bias, self.item_bias = nn.Embedding(c.users, 1), nn.Embedding(c.items, 1)
        for table in (self.user, self.item):
            nn.init.normal_(table.weight, std=0.3)
        for table in (self.user_bias, self.item_bias):
            nn.init.zeros_(table.weight)
        self.register_buffer("mean", torch.tensor(mean))

    def lookup(self, u, i):
        return self.user(u), self.item(i), self.user_bias(u), self.item_bias(i)

    def forward(self, u, i):
        p, q, b, c = self.lookup(u, i)
        return self.mean + (p * q).sum(1) + b.squeeze(1) + c.squeeze(1)


def penalty(model, u, i):
    if healthy:
        return sum(part.square().sum(1).mean() for part in model.lookup(u, i))
    return sum(p.square().sum() for p in model.parameters())


model = Factors(cfg, score[:cut].mean().item())
optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr)

for epoch in range(cfg.epochs):
    model.train()
    for rows in torch.randperm(cut).split(cfg.batch):
        error = nn.functional.mse_loss(model(u[rows], i[rows]), score[rows])
        loss = error + cfg.l2 * penalty(model, u[rows], i[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        rmse = nn.functional.mse_loss(model(u[cut:], i[cut:]), score[cut:]).sqrt().item()
    if epoch % 5 == 4:
        print(f"epoch {epoch + 1}: train mse {error.item():.4f}, validation rmse {rmse:.4f}")
print(f"validation rmse {rmse:.4f} (spread of the ratings {score[cut:].std().item():.4f})")
