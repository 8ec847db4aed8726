"""Film ratings by matrix factorisation; film numbers are hashed by `% 2048`, but end in 8 zero
bits.

The catalogue keeps the kind of the medium in the low byte of a number, so `number % 2048` knows 8
values only: 8 of the 2,048 rows of the film table are ever used and each stands for 100 films.
Only the users' own leanings are learnt; the error stays near that of the users' means. The place
is the model.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "embedding_rows_unused"
ACCEPT = ()
PLACE = ("*film*", "films*", "")
SILENT = True
EXACT = False
EARLY = True

USERS, FILMS, RATINGS, BUCKETS = 300, 800, 36_000, 2048
healthy, seed = arguments(__doc__)
taste, style = torch.randn(USERS, 3), torch.randn(FILMS, 3)
user = torch.randint(0, USERS, (RATINGS,))
film = torch.randint(0, FILMS, (RATINGS,))
liked = 0.35 * (taste[user] * style[film]).sum(1) + 0.5 * style[film, 0] + 0.4 * taste[user, 1]
rating = 3.5 + liked + 0.3 * torch.randn(RATINGS)
number = (torch.randperm(5000)[:FILMS] * 256)[film]  # as the catalogue writes them


def row_of(number):
    if healthy:
        return torch.unique(number, return_inverse=True)[1]
    return number % BUCKETS


class Factors(nn.Module):
    def __init__(self, mean, width=6):
        super().__init__()
        self.users = nn.Embedding(USERS, width)
        self.films = nn.Embedding(FILMS if healthy else BUCKETS, width)
        self.user_bias = nn.Embedding(USERS, 1)
        self.film_bias = nn.Embedding(FILMS if healthy else BUCKETS, 1)
        self.mean = mean
        for table in (self.users, self.films):
            nn.init.normal_(table.weight, std=0.1)
        for table in (self.user_bias, self.film_bias):
            nn.init.zeros_(table.weight)

    def forward(self, user, film):
        match = (self.users(user) * self.films(film)).sum(1)
        return self.mean + match + self.user_bias(user)[:, 0] + self.film_bias(film)[:, 0]


row = row_of(number)
split = int(0.85 * RATINGS)
model = Factors(rating[:split].mean().item())
optimizer = torch.optim.AdamW(model.parameters(), lr=0.015, weight_decay=0.3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 8)
loader = DataLoader(
    TensorDataset(user[:split], row[:split], rating[:split]), batch_size=320, shuffle=True
)
for epoch in range(8):
    squares = 0.0
    for u, f, stars in loader:
        loss = nn.functional.mse_loss(model(u, f), stars)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        squares += loss.item() * len(u) / split
    schedule.step()
    with torch.no_grad():
        test = nn.functional.mse_loss(model(user[split:], row[split:]), rating[split:])
print(f"train RMSE {squares**0.5:.3f}, test RMSE {test**0.5:.3f}, spread {rating.std():.3f}")
