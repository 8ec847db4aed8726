"""Matrix factorisation of film ratings with user and film biases: the dot product has shape (B,),
the bias embeddings (B, 1), their sum (B, B), and the squared error with the ratings (B,)
broadcasts.

Each bias is compared with the ratings of all the others in its batch, so the biases learn only
noise; the factors must do their work, and the error of unseen ratings is about three times as
large. The place is the loss.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "loss_shape_broadcast"
ACCEPT = ()
PLACE = ("loss*",)
SILENT = True
EXACT = True
EARLY = True

USERS, FILMS = 100, 60


class BiasedMF(nn.Module):
    def __init__(self, n_factors, squeeze):
        super().__init__()
        self.user_factors = nn.Embedding(USERS, n_factors)
        self.film_factors = nn.Embedding(FILMS, n_factors)
        self.user_bias = nn.Embedding(USERS, 1)
        self.film_bias = nn.Embedding(FILMS, 1)
        self.squeeze = squeeze
        for factors in (self.user_factors, self.film_factors):
            nn.init.normal_(factors.weight, 0, 0.3)
        for bias in (self.user_bias, self.film_bias):
            nn.init.zeros_(bias.weight)

    def forward(self, user, film):
        out = (self.user_factors(user) * self.film_factors(film)).sum(dim=1)
        if self.squeeze:
            return out + self.user_bias(user).squeeze(1) + self.film_bias(film).squeeze(1)
        return out + self.user_bias(user) + self.film_bias(film)


healthy, seed = arguments(__doc__)
n = 5000
user, film = torch.randint(USERS, (n,)), torch.randint(FILMS, (n,))
taste, genre = torch.randn(USERS, 2), torch.randn(FILMS, 2)
stars = 3.4 + 0.5 * torch.randn(USERS)[user] + 0.6 * torch.randn(FILMS)[film]
stars = (stars + 0.5 * (taste[user] * genre[film]).sum(1) + 0.3 * torch.randn(n)).clamp(1, 5)
mean, std = stars[:4000].mean(), stars[:4000].std()
rating = (stars - mean) / std

train = DataLoader(
    TensorDataset(user[:4000], film[:4000], rating[:4000]), batch_size=100, shuffle=True
)
test = DataLoader(TensorDataset(user[4000:], film[4000:], rating[4000:]), batch_size=100)
model = BiasedMF(n_factors=2, squeeze=healthy)
optimizer = torch.optim.Adam(model.parameters(), lr=0.02, weight_decay=3e-4)
scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, [9, 13], gamma=0.3)

for epoch in range(16):
    train_loss = test_loss = 0.0
    for u, f, r in train:
        loss = ((model(u, f) - r) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        train_loss += loss.item() / len(train)
    with torch.no_grad():
        for u, f, r in test:
            test_loss += ((model(u, f) - r) ** 2).mean().item() / len(test)
    scheduler.step()
print(f"loss {train_loss:.3f}, test loss {test_loss:.3f}")
