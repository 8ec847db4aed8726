"""Trains a recommender with SparseAdam for its sparse embeddings and AdamW with two parameter
groups for the net on top.

Users and films have hidden tastes; wanted is the rating, centred. Most embedding rows get no
gradient in a given step.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = (
    "two optimizers of which neither holds all parameters, sparse gradients, groups with different "
    "rates and decays"
)

_, seed = arguments(__doc__)
USERS, FILMS, RATINGS = 150, 100, 9000

taste, style = torch.randn(USERS, 2), torch.randn(FILMS, 2)
pairs = torch.randperm(USERS * FILMS)[:RATINGS]
user, film = pairs // FILMS, pairs % FILMS
rating = (taste[user] * style[film]).sum(1) + 0.5 * style[film, 0] + 0.3 * torch.randn(RATINGS)
cut = int(0.85 * RATINGS)
mean, std = rating[:cut].mean(), rating[:cut].std()
rating = (rating - mean) / std
loader = DataLoader(
    TensorDataset(user[:cut], film[:cut], rating[:cut]), batch_size=128, shuffle=True
)
user_val, film_val, rating_val = user[cut:], film[cut:], rating[cut:]


class Recommender(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.user = nn.Embedding(USERS, dim, sparse=True)
        self.film = nn.Embedding(FILMS, dim, sparse=True)
        self.net = nn.Sequential(nn.Linear(3 * dim, 32), nn.ReLU(), nn.Linear(32, 1))
        nn.init.normal_(self.user.weight, std=0.3)
        nn.init.normal_(self.film.weight, std=0.3)

    def forward(self, user, film):
        u, f = self.user(user), self.film(film)
        return self.net(torch.cat([u, f, u * f], 1)).squeeze(1)


model = Recommender()
sparse = torch.optim.SparseAdam([*model.user.parameters(), *model.film.parameters()], lr=3e-2)
dense = torch.optim.AdamW(
    [
        {"params": [p for p in model.net.parameters() if p.ndim > 1], "weight_decay": 0.05},
        {
            "params": [p for p in model.net.parameters() if p.ndim == 1],
            "weight_decay": 0.0,
            "lr": 1e-3,
        },
    ],
    lr=3e-3,
)
schedules = [torch.optim.lr_scheduler.ExponentialLR(o, gamma=0.8) for o in (sparse, dense)]
loss_fn = nn.MSELoss()

for epoch in range(1, 14):
    model.train()
    total = 0.0
    for ub, fb, rb in loader:
        sparse.zero_grad()
        dense.zero_grad()
        loss = loss_fn(model(ub, fb), rb)
        loss.backward()
        sparse.step()
        dense.step()
        total += loss.item()
    for s in schedules:
        s.step()
    model.eval()
    with torch.no_grad():
        val = loss_fn(model(user_val, film_val), rating_val).item()
    print(f"epoch {epoch} train {total / len(loader):.4f} val {val:.4f}")
