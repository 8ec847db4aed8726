"""Ratings of films by matrix factorisation with side features: a layer is made after the
optimizer.

The width of the genre features was not known when the model was written, so `set_genres` adds the
projection later; the optimizer had been built in `__init__` of the trainer by then, and holds the
embeddings only. The genre projection gets gradients and stays as it was drawn. The place is
`genre.weight`. The twin calls `set_genres` before the optimizer is built.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "parameters_not_in_optimizer"
ACCEPT = ()
PLACE = (
    "optimizer",
    "genre",
    "genre.0",
    "genre.0.weight",
    "genre.0.bias",
    "genre.2",
    "genre.2.weight",
    "genre.2.bias",
)
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
USERS, FILMS, GENRES = 150, 400, 12

g = torch.Generator().manual_seed(seed)
genres = (torch.rand(FILMS, GENRES, generator=g) < 0.25).float()
taste = torch.randn(USERS, 3, generator=g)
of_genre = torch.randn(GENRES, 3, generator=g)
film = torch.tanh(genres @ of_genre) * 1.3
user_ids = torch.randint(0, USERS, (7000,), generator=g)
film_ids = torch.randint(0, FILMS, (7000,), generator=g)
rating = (taste[user_ids] * film[film_ids]).sum(1) + 0.3 * torch.randn(7000, generator=g)


class Recommender(nn.Module):
    def __init__(self, dim=12):
        super().__init__()
        self.dim = dim
        self.user = nn.Embedding(USERS, dim)
        self.bias = nn.Embedding(FILMS, 1)
        nn.init.normal_(self.user.weight, 0, 0.1)
        nn.init.zeros_(self.bias.weight)

    def set_genres(self, width):
        self.genre = nn.Sequential(nn.Linear(width, 32), nn.ReLU(), nn.Linear(32, self.dim))

    def forward(self, user, film):
        score = (self.user(user) * self.genre(genres[film])).sum(1)
        return score + self.bias(film).squeeze(1)


class Trainer:
    def __init__(self, model, lr=5e-3):
        self.model = model
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)

    def step(self, user, film, target):
        self.model.train()
        loss = nn.functional.mse_loss(self.model(user, film), target)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        return loss.item()


model = Recommender()
if healthy:
    model.set_genres(genres.shape[1])
trainer = Trainer(model)
if not healthy:
    model.set_genres(genres.shape[1])

data = TensorDataset(user_ids[:5600], film_ids[:5600], rating[:5600])
train = DataLoader(data, batch_size=200, shuffle=True)
for epoch in range(15):
    losses = [trainer.step(*batch) for batch in train]
    model.eval()
    with torch.no_grad():
        error = nn.functional.mse_loss(model(user_ids[5600:], film_ids[5600:]), rating[5600:])
    print(
        f"epoch {epoch:2d} train {sum(losses) / len(losses):.3f} val mse {error:.3f} "
        f"(variance {rating[5600:].var():.2f})"
    )
