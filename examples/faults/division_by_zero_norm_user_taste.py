"""Film recommendations: a user's taste is divided by its length, which is 0 for new users.

The taste is the mean of the films a user has seen, made a unit vector for the cosine. A few users
have seen nothing yet, their sum is all zeros, and 0 / 0 gives a NaN that the first step spreads to
all the films.
The place is the scaling in the model's taste. The twin keeps the divisor above a small number.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "division_by_zero_norm"
ACCEPT = ("nan_input",)
PLACE = ("films", "loop", "loss*", "input*", "output*", "taste")
SILENT = False
EXACT = True
EARLY = True

FILMS, USERS, DIM = 120, 900, 16


class Recommender(nn.Module):
    def __init__(self, safe):
        super().__init__()
        self.films = nn.Embedding(FILMS, DIM)
        self.offered = nn.Embedding(FILMS, DIM)
        self.scale = nn.Parameter(torch.tensor(5.0))
        self.eps = 1e-8 if safe else 0.0

    def taste(self, history):
        total = history @ self.films.weight
        length = (total.pow(2).sum(1, keepdim=True) + self.eps).sqrt()
        return total / length

    def forward(self, history, film):
        item = F.normalize(self.offered(film), dim=1)
        return self.scale * (self.taste(history) * item).sum(1)


def make_users():
    genre = torch.arange(FILMS) % 6
    liked = torch.randint(0, 6, (USERS,))
    chance = torch.where(genre[None] == liked[:, None], 0.45, 0.05)
    seen = (torch.rand(USERS, FILMS) < chance).float()
    seen[torch.rand(USERS) < 0.02] = 0.0
    film = torch.randint(0, FILMS, (USERS, 20))
    like = torch.rand(USERS, 20) < torch.where(genre[film] == liked[:, None], 0.92, 0.12)
    return seen, film, like.float()


healthy, seed = arguments(__doc__)
seen, film, like = make_users()
cut = 700
model = Recommender(safe=healthy)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)

for epoch in range(20):
    total = 0.0
    for rows in torch.randperm(cut).split(50):
        history = seen[rows].repeat_interleave(20, 0)
        loss = F.binary_cross_entropy_with_logits(
            model(history, film[rows].flatten()), like[rows].flatten()
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows) / cut
    if epoch % 4 == 3:
        with torch.no_grad():
            known = seen[cut:].repeat_interleave(20, 0)
            guess = model(known, film[cut:].flatten()) > 0
            right = (guess == (like[cut:].flatten() > 0.5)).float().mean().item()
        print(f"epoch {epoch + 1} loss {total:.4f} validation accuracy {right:.3f}")
