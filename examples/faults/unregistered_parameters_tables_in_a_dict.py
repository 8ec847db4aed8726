"""Ratings of films from user, film and hour; the embedding tables are kept in a plain dict.

The tables were moved from attributes into `self.tables = {...}`, so that columns can be added in
the config. A dict is no module: `model.parameters()` has only the layers behind, and the tables
stay as they were drawn. The layers make what they can of random vectors, and the loss falls. The
place is the tables. The twin uses a ModuleDict.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset, random_split

KIND = "unregistered_parameters"
ACCEPT = ("parameters_not_in_optimizer",)
PLACE = (
    "tables",
    "tables.user",
    "tables.film",
    "tables.hour",
    "optimizer",
    "tables.user.weight",
    "tables.film.weight",
    "tables.hour.weight",
)
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
SIZES = {"user": 120, "film": 80, "hour": 24}


class Ratings(Dataset):
    def __init__(self, n, g):
        taste = torch.randn(SIZES["user"], 3, generator=g)
        style = torch.randn(SIZES["film"], 3, generator=g)
        liked = 0.6 * torch.randn(SIZES["film"], generator=g)
        kind = 0.5 * torch.randn(SIZES["user"], generator=g)
        self.columns = {k: torch.randint(0, size, (n,), generator=g) for k, size in SIZES.items()}
        u, f, h = self.columns.values()
        score = (taste[u] * style[f]).sum(1) * 0.6 + liked[f] + kind[u]
        score += 0.3 * torch.sin(h * 6.283 / 24) + 0.35 * torch.randn(n, generator=g)
        self.rating = score

    def __len__(self):
        return len(self.rating)

    def __getitem__(self, i):
        return {k: column[i] for k, column in self.columns.items()}, self.rating[i]


class RatingModel(nn.Module):
    def __init__(self, sizes, dim=8):
        super().__init__()
        tables = {name: nn.Embedding(size, dim) for name, size in sizes.items()}
        for table in tables.values():
            nn.init.normal_(table.weight, std=0.3)
        self.tables = nn.ModuleDict(tables) if healthy else tables
        self.mlp = nn.Sequential(nn.Linear(dim * (len(sizes) + 1), 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, columns):
        vectors = {name: table(columns[name]) for name, table in self.tables.items()}
        crossed = vectors["user"] * vectors["film"]
        return self.mlp(torch.cat([*vectors.values(), crossed], 1)).squeeze(1)


class Fit:
    """Adam, mean squared error, and the validation's error as a share of the variance."""

    def __init__(self, model, train, val):
        self.model, self.train_set, self.val_set = model, train, val
        self.optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, weight_decay=1e-5)
        self.schedule = torch.optim.lr_scheduler.StepLR(self.optimizer, 9, gamma=0.2)

    def epoch(self):
        self.model.train()
        total = 0.0
        for columns, rating in DataLoader(self.train_set, batch_size=64, shuffle=True):
            loss = nn.functional.mse_loss(self.model(columns), rating)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += loss.item() * len(rating)
        self.schedule.step()
        return total / len(self.train_set)

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        pairs = [(self.model(c), r) for c, r in DataLoader(self.val_set, batch_size=500)]
        guess, rating = (torch.cat(part) for part in zip(*pairs, strict=False))
        return nn.functional.mse_loss(guess, rating).item(), rating.var().item()


g = torch.Generator().manual_seed(seed)
train, val = random_split(Ratings(7000, g), [5800, 1200], generator=g)
fit = Fit(RatingModel(SIZES), train, val)
for epoch in range(13):
    loss = fit.epoch()
    error, variance = fit.validate()
    print(f"epoch {epoch} train {loss:.3f} validation {error:.3f} R2 {1 - error / variance:.3f}")
