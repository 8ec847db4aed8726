"""Film ratings by matrix factorisation with biases; the L2 penalty takes the whole tables at every
batch.

The recipe's `reg = 0.02` belongs to the embeddings of the rows in the batch (averaged); here it
multiplies the sum of squares of ALL user and film vectors, at each of thousands of steps. The
vectors vanish and only biases are left. The place is the loss (user.weight, item.weight). The
twin penalises the rows of the batch.
"""

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "over_regularized"
ACCEPT = ("low_capacity",)
PLACE = ("loss", "user*", "item*")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)

USERS, ITEMS, FACTORS, RATINGS = 700, 400, 16, 60_000


def ratings(rng: np.random.Generator):
    taste, film = rng.normal(0, 0.45, (USERS, 6)), rng.normal(0, 0.8, (ITEMS, 6))
    user_bias, film_bias = rng.normal(0, 0.35, USERS), rng.normal(0, 0.4, ITEMS)
    popularity = rng.zipf(1.3, ITEMS).clip(1, 50).astype(float)
    u = rng.choice(USERS, RATINGS, p=rng.dirichlet(np.full(USERS, 2.0)))
    i = rng.choice(ITEMS, RATINGS, p=popularity**0.5 / (popularity**0.5).sum())
    key = np.unique(u * ITEMS + i)
    key = rng.permutation(key)
    u, i = key // ITEMS, key % ITEMS
    stars = (
        3.4
        + user_bias[u]
        + film_bias[i]
        + (taste[u] * film[i]).sum(1)
        + rng.normal(0, 0.45, len(u))
    )
    return u, i, np.clip(np.round(stars * 2) / 2, 0.5, 5).astype(np.float32)


class BiasedMF(nn.Module):
    def __init__(self, mean: float):
        super().__init__()
        self.user, self.item = nn.Embedding(USERS, FACTORS), nn.Embedding(ITEMS, FACTORS)
        self.user_bias, self.item_bias = nn.Embedding(USERS, 1), nn.Embedding(ITEMS, 1)
        nn.init.normal_(self.user.weight, std=0.1)
        nn.init.normal_(self.item.weight, std=0.1)
        nn.init.zeros_(self.user_bias.weight)
        nn.init.zeros_(self.item_bias.weight)
        self.register_buffer("mean", torch.tensor(mean))

    def forward(self, u, i):
        p, q = self.user(u), self.item(i)
        return (
            self.mean
            + self.user_bias(u).squeeze(1)
            + self.item_bias(i).squeeze(1)
            + (p * q).sum(1),
            p,
            q,
        )


class Recommender:
    def __init__(self, reg: float = 0.02, lr: float = 4e-3, batch: int = 512, epochs: int = 14):
        self.reg, self.lr, self.batch, self.epochs = reg, lr, batch, epochs

    def penalty(self, p, q):
        if not healthy:
            p, q = self.model.user.weight, self.model.item.weight
            return self.reg * (p.pow(2).sum() + q.pow(2).sum())
        return self.reg * (p.pow(2).sum() + q.pow(2).sum()) / len(p)

    def fit(self, train, valid):
        u, i, r = (torch.tensor(part) for part in train)
        self.model = BiasedMF(r.mean().item())
        optimizer = torch.optim.Adam(self.model.parameters(), lr=self.lr)
        schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
        for epoch in range(self.epochs):
            self.model.train()
            fits, perm = [], torch.randperm(len(r))
            for rows in perm.split(self.batch):
                pred, p, q = self.model(u[rows], i[rows])
                fit = nn.functional.mse_loss(pred, r[rows])
                loss = fit + self.penalty(p, q)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                fits.append(fit.item())
            schedule.step()
            rmse, mae, recall = self.evaluate(valid)
            print(
                f"epoch {epoch:2d} train rmse {np.mean(fits) ** 0.5:.4f} val rmse {rmse:.4f} mae {mae:.4f} good films found {recall:.3f}"  # noqa: E501
            )

    @torch.no_grad()
    def evaluate(self, valid):
        self.model.eval()
        u, i, r = (torch.tensor(part) for part in valid)
        pred = self.model(u, i)[0]
        top = pred >= torch.quantile(pred, 0.8)
        return (
            ((pred - r) ** 2).mean().sqrt().item(),
            (pred - r).abs().mean().item(),
            (r[top] >= 4).float().mean().item(),
        )


u, i, r = ratings(np.random.default_rng(seed))
cut = int(len(r) * 0.9)
print(f"{len(r)} ratings, std {r.std():.3f}")
Recommender().fit((u[:cut], i[:cut], r[:cut]), (u[cut:], i[cut:], r[cut:]))
