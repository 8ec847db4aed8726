"""A film recommender starts its item table with Embedding.from_pretrained, which freezes the table.

The vectors come from a hashed title and are only meant as a start, but `freeze=True` is the
default: the users must make do with random axes, and only the biases and user vectors learn. The
place is the item table.
"""

import torch
from data import arguments
from torch import nn

KIND = "frozen_parameters"
ACCEPT = ()
PLACE = ("films*", "")
SILENT = True
EXACT = True
EARLY = True

healthy, _ = arguments(__doc__)
N_USERS, N_FILMS, DIM = 250, 160, 6


def ratings():
    taste, style = torch.randn(N_USERS, 4) / 2, torch.randn(N_FILMS, 4)
    liked = 0.4 * torch.randn(N_FILMS)
    full = taste @ style.T + liked + 0.25 * torch.randn(N_USERS, N_FILMS)
    seen = torch.rand(N_USERS, N_FILMS) < 0.5
    user, film = seen.nonzero(as_tuple=True)
    order = torch.randperm(len(user))
    user, film = user[order], film[order]
    return user, film, full[user, film] - full.mean()


class Recommender(nn.Module):
    def __init__(self, hashed, freeze):
        super().__init__()
        self.users = nn.Embedding(N_USERS, DIM)
        nn.init.normal_(self.users.weight, std=0.3)
        if freeze:
            self.films = nn.Embedding.from_pretrained(hashed)
        else:
            self.films = nn.Embedding.from_pretrained(hashed, freeze=False)
        self.film_bias = nn.Embedding(N_FILMS, 1)
        nn.init.zeros_(self.film_bias.weight)

    def forward(self, user, film):
        match = (self.users(user) * self.films(film)).sum(1)
        return match + self.film_bias(film)[:, 0]


user, film, stars = ratings()
cut = int(0.85 * len(user))
model = Recommender(0.3 * torch.randn(N_FILMS, DIM), freeze=not healthy)
optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=2e-2)
EPOCHS = 12
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)
for epoch in range(EPOCHS):
    for rows in torch.randperm(cut).split(512):
        loss = nn.functional.mse_loss(model(user[rows], film[rows]), stars[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    scheduler.step()
    with torch.no_grad():
        test = nn.functional.mse_loss(model(user[cut:], film[cut:]), stars[cut:])
    print(f"epoch {epoch}: train {loss.item():.3f}  test {test.item():.3f}")
