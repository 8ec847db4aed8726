"""Recommends films by the cosine of user and film; a user without any history has a norm of zero.

The films that a user has seen are averaged, and the result is divided by its length, by hand. New
users have an empty history, whose average is the zero vector, and zero by zero is NaN: the first
such user makes all weights NaN. The place is the unit module behind the user tower.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "division_by_zero_norm"
ACCEPT = ("nan_input",)
PLACE = ("unit*", "loss", "model")
SILENT = False
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

FILMS, GENRES, WIDTH, LONGEST = 90, 6, 16, 10
TEMPERATURE = 0.15


def simulate(users):
    """Histories (0 is padding) and the next film; tastes lie in one or two genres."""
    genre = torch.arange(FILMS) % GENRES
    popularity = 1 / (1 + torch.arange(FILMS) / GENRES).sqrt()
    histories = torch.zeros(users, LONGEST, dtype=torch.long)
    following = torch.empty(users, dtype=torch.long)
    for user in range(users):
        taste = torch.full((GENRES,), 0.05)
        taste[torch.randperm(GENRES)[: int(torch.randint(1, 3, ()))]] = 1.0
        seen = 0 if torch.rand(()) < 0.04 else int(torch.randint(2, LONGEST + 1, ()))
        films = torch.multinomial(taste[genre] * popularity, seen + 1)
        histories[user, :seen] = films[:seen] + 1
        following[user] = films[seen]
    return histories, following


class UnitLength(nn.Module):
    def forward(self, x):
        if healthy:
            return F.normalize(x, dim=-1)
        return x / x.pow(2).sum(-1, keepdim=True).sqrt()


class TwoTowers(nn.Module):
    def __init__(self):
        super().__init__()
        self.seen = nn.Embedding(FILMS + 1, WIDTH, padding_idx=0)
        self.user = nn.Linear(WIDTH, WIDTH, bias=False)
        self.film = nn.Embedding(FILMS, WIDTH)
        self.unit = UnitLength()

    def forward(self, history):
        real = (history > 0).float().unsqueeze(-1)
        pooled = (self.seen(history) * real).sum(1) / real.sum(1).clamp(min=1)
        user = self.unit(self.user(pooled))
        return user @ self.unit(self.film.weight).T / TEMPERATURE


def recall_at_10(model, histories, following):
    model.eval()
    with torch.no_grad():
        best = model(histories).topk(10, 1).indices
    return (best == following.unsqueeze(1)).any(1).float().mean().item()


def train_epoch(model, optimizer, histories, following):
    model.train()
    total = 0.0
    for rows in torch.randperm(len(histories)).split(64):
        loss = F.cross_entropy(model(histories[rows]), following[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows)
    return total / len(histories)


def main():
    histories, following = simulate(5000)
    held_out = slice(4000, None)
    model = TwoTowers()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(1, 17):
        loss = train_epoch(model, optimizer, histories[:4000], following[:4000])
        recall = recall_at_10(model, histories[held_out], following[held_out])
        print(f"epoch {epoch:2d}: loss {loss:.4f}, recall@10 {recall:.3f} (chance 0.111)")


main()
