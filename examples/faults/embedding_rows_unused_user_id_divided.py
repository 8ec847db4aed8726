"""Matrix factorisation for film ratings; the user numbers are squeezed into few rows.

Ids start at 100,000 and rise by seven; the script divides by 1,000 to get "small" indices, so all
users share a handful of rows of a table with 400. Tastes are averaged away. The place is the user
embedding (its input). The twin numbers the users one by one.
"""

import torch
from data import arguments
from torch import nn

KIND = "embedding_rows_unused"
ACCEPT = ()
PLACE = ("users", "input*", "loader")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)

USERS, FILMS, N = 400, 120, 16000
taste, style = torch.randn(USERS, 3), torch.randn(FILMS, 3)
user, film = torch.randint(USERS, (N,)), torch.randint(FILMS, (N,))
rating = (3.2 + 0.6 * (taste[user] * style[film]).sum(1) + 0.2 * torch.randn(N)).clamp(1, 5)
user_id = 100_000 + 7 * user

index = torch.unique(user_id, return_inverse=True)[1] if healthy else (user_id - 100_000) // 1000

train, val = torch.arange(N).split([13000, 3000])


class Recommender(nn.Module):
    def __init__(self, dim=4):
        super().__init__()
        self.users = nn.Embedding(USERS, dim)
        self.films = nn.Embedding(FILMS, dim)
        self.user_bias = nn.Embedding(USERS, 1)
        self.film_bias = nn.Embedding(FILMS, 1)
        nn.init.normal_(self.users.weight, std=0.3)
        nn.init.normal_(self.films.weight, std=0.3)
        nn.init.zeros_(self.user_bias.weight)
        nn.init.zeros_(self.film_bias.weight)
        self.mean = nn.Parameter(torch.tensor(3.0))

    def forward(self, u, f):
        dot = (self.users(u) * self.films(f)).sum(1)
        return self.mean + dot + self.user_bias(u)[:, 0] + self.film_bias(f)[:, 0]


model = Recommender()
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.05)
for epoch in range(14):
    model.train()
    losses = []
    for rows in train[torch.randperm(len(train))].split(200):
        loss = nn.functional.mse_loss(model(index[rows], film[rows]), rating[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        error = nn.functional.mse_loss(model(index[val], film[val]), rating[val])
    print(
        f"epoch {epoch}: train {sum(losses) / len(losses):.3f}, val RMSE {error.sqrt():.3f} "
        f"(spread {rating.std():.3f})"
    )
