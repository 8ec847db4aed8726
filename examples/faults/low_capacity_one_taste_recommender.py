"""A recommender by matrix factorisation gives each user and each film one number, "the taste",
where people differ in eight ways.

One factor explains an eighth of what there is: training and test error level off together, far
above the noise. The place is the model: its two embeddings.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "low_capacity"
ACCEPT = ()
PLACE = ("user*", "film*", "*embed*", "")
SILENT = True
EXACT = False
EARLY = False

USERS, FILMS = 240, 150


class Factors(nn.Module):
    def __init__(self, k):
        super().__init__()
        self.user = nn.Embedding(USERS, k)
        self.film = nn.Embedding(FILMS, k)
        self.user_bias = nn.Embedding(USERS, 1)
        self.film_bias = nn.Embedding(FILMS, 1)
        for table in (self.user, self.film):
            nn.init.normal_(table.weight, std=0.3)
        for table in (self.user_bias, self.film_bias):
            nn.init.zeros_(table.weight)

    def forward(self, u, f):
        return (
            (self.user(u) * self.film(f)).sum(1)
            + self.user_bias(u).squeeze(1)
            + self.film_bias(f).squeeze(1)
        )


def ratings():
    taste, trait = torch.randn(USERS, 8), torch.randn(FILMS, 8)
    full = taste @ trait.T / 8**0.5 + 0.3 * torch.randn(FILMS) + 0.3 * torch.randn(USERS, 1)
    full = full + 0.3 * torch.randn(USERS, FILMS)
    seen = torch.nonzero(torch.rand(USERS, FILMS) < 0.75)
    seen = seen[torch.randperm(len(seen))]
    stars = full[seen[:, 0], seen[:, 1]]
    return seen[:, 0], seen[:, 1], (stars - stars.mean()) / stars.std()


healthy, _ = arguments(__doc__)
u, f, stars = ratings()
cut = int(0.85 * len(u))
loader = DataLoader(TensorDataset(u[:cut], f[:cut], stars[:cut]), batch_size=1024, shuffle=True)
model = Factors(8 if healthy else 1)
optimizer = torch.optim.Adam(model.parameters(), lr=0.03)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 18)
for epoch in range(18):
    total = 0.0
    for users, films, given in loader:
        loss = nn.functional.mse_loss(model(users, films), given)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(given) / cut
    scheduler.step()
    with torch.no_grad():
        test = nn.functional.mse_loss(model(u[cut:], f[cut:]), stars[cut:])
    if epoch % 3 == 2:
        print(f"epoch {epoch + 1}: train {total:.4f}, test {test.item():.4f}")
