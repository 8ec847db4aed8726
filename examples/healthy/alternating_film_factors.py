"""Ratings of films by factors: the users' and the films' factors take turns, each its optimizer.

In even epochs only the users' side is stepped, in odd ones only the films', as in alternating
least squares. A small decay keeps the factors of seldom rated films near zero.
"""

import torch
from data import arguments
from torch import nn
from torch.nn import functional as F

ODD = "in each epoch half of the parameters stand still, as two optimizers take turns"

_, seed = arguments(__doc__)
USERS, FILMS, K = 200, 80, 4


class Side(nn.Module):
    def __init__(self, count):
        super().__init__()
        self.factors = nn.Embedding(count, K)
        self.bias = nn.Embedding(count, 1)
        nn.init.normal_(self.factors.weight, std=0.3)
        nn.init.zeros_(self.bias.weight)


true_u, true_f = torch.randn(USERS, K) * 0.7, torch.randn(FILMS, K) * 0.7
user = torch.randint(0, USERS, (8000,))
film = torch.randint(0, FILMS, (8000,))
rating = (true_u[user] * true_f[film]).sum(1) + 0.2 * torch.randn(8000)
cut = 6500

users, films = Side(USERS), Side(FILMS)
optimizers = [
    torch.optim.AdamW(side.parameters(), lr=0.02, weight_decay=0.02) for side in (users, films)
]


def predict(u, f):
    product = (users.factors(u) * films.factors(f)).sum(1)
    return product + users.bias(u).squeeze(1) + films.bias(f).squeeze(1)


for epoch in range(20):
    optimizer = optimizers[epoch % 2]
    total = 0.0
    for rows in torch.randperm(cut).split(130):
        for each in optimizers:
            each.zero_grad()
        loss = F.mse_loss(predict(user[rows], film[rows]), rating[rows])
        loss.backward()
        optimizer.step()
        total += loss.item() / 50
    if epoch % 4 == 3:
        with torch.no_grad():
            val = F.mse_loss(predict(user[cut:], film[cut:]), rating[cut:]).item()
        print(f"epoch {epoch + 1} train {total:.4f} val {val:.4f}")
