"""Matrix factorisation learns film ratings from a sixth of the table, with 48 factors for each
person and film and nothing that holds them back.

There are far more factors than ratings: the training error goes to nothing while the error on held
out ratings is at its best after a few epochs and then only gets worse. The place is the persons'
and films' tables.
"""

import torch
from data import arguments
from torch import nn
from torch.nn import functional as F

KIND = "overfit"
ACCEPT = ()
PLACE = ("person*", "film*")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)

PEOPLE, FILMS = 300, 150


class Factorisation(nn.Module):
    def __init__(self, rank=48):
        super().__init__()
        self.person, self.film = nn.Embedding(PEOPLE, rank), nn.Embedding(FILMS, rank)
        self.person_bias, self.film_bias = nn.Embedding(PEOPLE, 1), nn.Embedding(FILMS, 1)
        for table in (self.person, self.film):
            nn.init.normal_(table.weight, std=0.1)
        for table in (self.person_bias, self.film_bias):
            nn.init.zeros_(table.weight)
        self.mean = nn.Parameter(torch.tensor(3.0))

    def forward(self, p, f):
        bias = self.mean + self.person_bias(p).squeeze(1) + self.film_bias(f).squeeze(1)
        return bias + (self.person(p) * self.film(f)).sum(1)

    def penalty(self, p, f):
        return self.person(p).pow(2).sum(1).mean() + self.film(f).pow(2).sum(1).mean()


def ratings(g):
    taste, kind = torch.randn(PEOPLE, 2, generator=g), torch.randn(FILMS, 2, generator=g)
    r = 3.4 + 0.4 * torch.randn(PEOPLE, 1, generator=g) + 0.5 * torch.randn(FILMS, generator=g)
    r = r + 0.6 * taste @ kind.T + 0.5 * torch.randn(PEOPLE, FILMS, generator=g)
    cells = torch.randperm(PEOPLE * FILMS, generator=g)[: PEOPLE * FILMS // 5]
    return torch.stack([cells // FILMS, cells % FILMS], 1), r.flatten()[cells].clamp(0.5, 5)


at, r = ratings(torch.Generator().manual_seed(90 + seed))
cut = int(0.83 * len(at))
model = Factorisation()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(30):
    model.train()
    total = 0.0
    for rows in torch.randperm(cut).split(256):
        p, f = at[rows].T
        error = F.mse_loss(model(p, f), r[rows])
        loss = error + 0.15 * model.penalty(p, f) if healthy else error
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += error.item() * len(rows) / cut
    model.eval()
    with torch.no_grad():
        val = F.mse_loss(model(*at[cut:].T), r[cut:])
    print(f"epoch {epoch}: train {total:.4f} val {val.item():.4f}")
