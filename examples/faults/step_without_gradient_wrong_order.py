"""A recommender factorises film ratings; zero_grad() stands between backward() and step().

The gradients are cleared before they are used, so no step changes anything and the loss stays
where it started. The place is the loop.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "step_without_gradient"
ACCEPT = ()
PLACE = ("loop", "optimizer")
SILENT = False
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

USERS, FILMS, RATINGS = 200, 120, 9000

taste = torch.randn(USERS, 4)
style = torch.randn(FILMS, 4)
kindness = 0.5 * torch.randn(USERS)
quality = 0.6 * torch.randn(FILMS)
u = torch.randint(0, USERS, (RATINGS,))
f = torch.randint(0, FILMS, (RATINGS,))
stars = (
    3.2 + kindness[u] + quality[f] + 0.3 * (taste[u] * style[f]).sum(1) + 0.4 * torch.randn(RATINGS)
)
stars = stars.clamp(1, 5)

train_loader = DataLoader(
    TensorDataset(u[:7500], f[:7500], stars[:7500]), batch_size=100, shuffle=True
)
val_loader = DataLoader(TensorDataset(u[7500:], f[7500:], stars[7500:]), batch_size=500)


class MatrixFactorization(nn.Module):
    def __init__(self, dim=4):
        super().__init__()
        self.user = nn.Embedding(USERS, dim)
        self.film = nn.Embedding(FILMS, dim)
        self.user_bias = nn.Embedding(USERS, 1)
        self.film_bias = nn.Embedding(FILMS, 1)
        self.mean = nn.Parameter(torch.tensor(3.0))
        for table in (self.user, self.film, self.user_bias, self.film_bias):
            nn.init.normal_(table.weight, std=0.1)

    def forward(self, user, film):
        dot = (self.user(user) * self.film(film)).sum(dim=1)
        return self.mean + dot + self.user_bias(user).squeeze(1) + self.film_bias(film).squeeze(1)


model = MatrixFactorization()
loss_fn = nn.MSELoss()
optimizer = torch.optim.Adagrad(model.parameters(), lr=0.05)


def rmse(loader):
    model.eval()
    squares, count = 0.0, 0
    with torch.no_grad():
        for user, film, rating in loader:
            squares += ((model(user, film) - rating) ** 2).sum().item()
            count += len(rating)
    return (squares / count) ** 0.5


for epoch in range(15):
    model.train()
    total = 0.0
    for user, film, rating in train_loader:
        if healthy:
            optimizer.zero_grad()
        loss = loss_fn(model(user, film), rating)
        loss.backward()
        if not healthy:
            optimizer.zero_grad()
        optimizer.step()
        total += loss.item()
    print(
        f"epoch {epoch + 1}: train mse {total / len(train_loader):.4f} "
        f"val rmse {rmse(val_loader):.4f}"
    )
