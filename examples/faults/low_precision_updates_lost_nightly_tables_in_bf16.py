"""A recommender of films is updated each night; its two tables of factors are stored in bfloat16.

The arithmetic is in float32 (the rows are cast after the look-up), but Adam adds its step of 0.001
to a bfloat16 number, and these lie 0.0078 apart above 1 and 0.0039 below: most entries never
change, and the tastes of last month stay. The place is the tables and the optimizer. The twin loads
the tables as float32.
"""

import torch
from data import arguments
from torch import nn

KIND = "low_precision_updates_lost"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("users", "films", "optimizer")
SILENT = True
EXACT = True
EARLY = True

USERS, FILMS, RANK = 250, 150, 4


class World:
    """Tastes that drift from month to month, and the stars that follow from them."""

    def __init__(self):
        self.taste, self.genre = torch.randn(USERS, RANK), torch.randn(FILMS, RANK)
        self.liked, self.quality = 0.4 * torch.randn(USERS), 0.4 * torch.randn(FILMS)

    def drift(self):
        self.taste = self.taste + 0.35 * torch.randn(USERS, RANK)
        self.genre = self.genre + 0.35 * torch.randn(FILMS, RANK)
        self.quality = self.quality + 0.3 * torch.randn(FILMS)

    def ratings(self, n):
        user, film = torch.randint(0, USERS, (n,)), torch.randint(0, FILMS, (n,))
        stars = 0.5 * (self.taste[user] * self.genre[film]).sum(1)
        stars = stars + self.liked[user] + self.quality[film]
        return user, film, stars + 0.3 * torch.randn(n)


class Factors(nn.Module):
    def __init__(self, checkpoint, dtype):
        super().__init__()
        table = nn.Embedding.from_pretrained
        self.users = table(checkpoint["users"].to(dtype), freeze=False)
        self.films = table(checkpoint["films"].to(dtype), freeze=False)
        self.user_bias = table(checkpoint["user_bias"], freeze=False)
        self.film_bias = table(checkpoint["film_bias"], freeze=False)

    def forward(self, user, film):
        product = (self.users(user).float() * self.films(film).float()).sum(1)
        return 0.5 * product + (self.user_bias(user) + self.film_bias(film)).squeeze(1)


def rmse(model, part):
    user, film, stars = part
    with torch.no_grad():
        return (model(user, film) - stars).square().mean().sqrt().item()


def main():
    healthy, _ = arguments(__doc__)
    world = World()
    checkpoint = {
        "users": world.taste + 0.15 * torch.randn(USERS, RANK),
        "films": world.genre + 0.15 * torch.randn(FILMS, RANK),
        "user_bias": world.liked[:, None].clone(),
        "film_bias": world.quality[:, None].clone(),
    }
    model = Factors(checkpoint, torch.float32 if healthy else torch.bfloat16)
    world.drift()
    train, val = world.ratings(24_000), world.ratings(4000)
    print(f"before: val rmse {rmse(model, val):.3f}")
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(12):
        losses = []
        for rows in torch.randperm(len(train[0])).split(500):
            user, film, stars = (part[rows] for part in train)
            loss = (model(user, film) - stars).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        if epoch % 3 == 2:
            mean = sum(losses) / len(losses)
            print(f"epoch {epoch}: loss {mean:.3f}, val rmse {rmse(model, val):.3f}")


main()
