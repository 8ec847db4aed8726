"""A recommender without any layer: the product of two vectors, plus a bias for each side."""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = "no layer but embeddings, whole numbers from 1 to 5 as targets of a squared error"


class Factors(nn.Module):
    def __init__(self, users, films, k=6):
        super().__init__()
        self.user, self.film = nn.Embedding(users, k), nn.Embedding(films, k)
        self.user_bias, self.film_bias = nn.Embedding(users, 1), nn.Embedding(films, 1)
        self.mean = nn.Parameter(torch.tensor(3.0))
        for table in (self.user, self.film, self.user_bias, self.film_bias):
            nn.init.normal_(table.weight, std=0.1)

    def forward(self, user, film):
        product = (self.user(user) * self.film(film)).sum(1)
        return self.mean + product + (self.user_bias(user) + self.film_bias(film)).squeeze(1)


_, seed = arguments(__doc__)
taste, kind = torch.randn(150, 3), torch.randn(100, 3)
user, film = torch.randint(0, 150, (8000,)), torch.randint(0, 100, (8000,))
stars = (3 + (taste[user] * kind[film]).sum(1) * 0.6 + 0.3 * torch.randn(8000)).round().clamp(1, 5)
loader = DataLoader(TensorDataset(user[:7000], film[:7000], stars[:7000]), 128, shuffle=True)
model = Factors(150, 100)
optimizer = torch.optim.Adam(model.parameters(), lr=0.02, weight_decay=1e-4)
for epoch in range(8):
    for u, f, s in loader:
        loss = nn.functional.mse_loss(model(u, f), s)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        val = nn.functional.mse_loss(model(user[7000:], film[7000:]), stars[7000:])
    print(f"epoch {epoch}: {loss.item():.3f}, val {val.item():.3f}")
