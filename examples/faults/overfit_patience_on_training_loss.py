"""Matrix factorisation of film ratings; early stopping is handed the training loss instead of the
validation loss.

The training loss falls in every epoch, so the patience is never used up, and the factors learn the
noise: the validation loss is best early and rises ever after. The loss falls all the same. The
place is the loop.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "overfit"
ACCEPT = ()
PLACE = ("loop", "", "loss*")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
USERS, FILMS = 150, 120


class Factors(nn.Module):
    def __init__(self, users, films, k=24):
        super().__init__()
        self.user = nn.Embedding(users, k)
        self.film = nn.Embedding(films, k)
        self.user_bias = nn.Embedding(users, 1)
        self.film_bias = nn.Embedding(films, 1)
        for table in (self.user, self.film):
            nn.init.normal_(table.weight, std=0.1)
        for table in (self.user_bias, self.film_bias):
            nn.init.zeros_(table.weight)
        self.mean = nn.Parameter(torch.tensor(3.5))

    def forward(self, u, f):
        dot = (self.user(u) * self.film(f)).sum(1)
        return self.mean + dot + self.user_bias(u).squeeze(1) + self.film_bias(f).squeeze(1)


class EarlyStopping:
    def __init__(self, patience=2):
        self.patience, self.best, self.bad = patience, float("inf"), 0

    def __call__(self, value):
        if value < self.best:
            self.best, self.bad = value, 0
        else:
            self.bad += 1
        return self.bad >= self.patience


def ratings(n):
    taste_u, taste_f = torch.randn(USERS, 3), torch.randn(FILMS, 3)
    u, f = torch.randint(0, USERS, (n,)), torch.randint(0, FILMS, (n,))
    mood_u, mood_f = 0.4 * torch.randn(USERS), 0.5 * torch.randn(FILMS)
    score = 3.5 + 0.35 * (taste_u[u] * taste_f[f]).sum(1) + mood_u[u] + mood_f[f]
    return u, f, (score + 0.6 * torch.randn(n)).clamp(1, 5)


u, f, r = ratings(6000)
train = TensorDataset(u[:4500], f[:4500], r[:4500])
loader = DataLoader(train, batch_size=256, shuffle=True)
val = u[4500:], f[4500:], r[4500:]
model = Factors(USERS, FILMS)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
stopping = EarlyStopping()
for epoch in range(40):
    model.train()
    train_loss = 0.0
    for users, films, stars in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(users, films), stars)
        loss.backward()
        optimizer.step()
        train_loss += loss.item() / len(loader)
    model.eval()
    with torch.no_grad():
        val_loss = nn.functional.mse_loss(model(*val[:2]), val[2]).item()
    print(f"epoch {epoch}: train rmse {train_loss**0.5:.3f} val rmse {val_loss**0.5:.3f}")
    if stopping(val_loss if healthy else train_loss):
        print("stopped")
        break
print(f"final val rmse {val_loss**0.5:.3f}")
