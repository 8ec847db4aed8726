"""Matrix factorisation whose factors get one dimension by a rule of thumb meant for something else.

`int(n_items ** 0.25) // 3` gives 1 for 150 films. The tastes have four dimensions: the error stays
far above the noise on training and validation alike. The place is the embeddings.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

KIND = "low_capacity"
ACCEPT = ()
PLACE = ("user_factors*", "item_factors*", "*factors*", "")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
USERS, FILMS = 220, 150
g = torch.Generator().manual_seed(70 + seed)
taste, film = torch.randn(USERS, 4, generator=g), torch.randn(FILMS, 4, generator=g)
stars = (
    3.4
    + 0.4 * taste @ film.T
    + 0.3 * torch.randn(FILMS, generator=g)
    + 0.25 * torch.randn(USERS, FILMS, generator=g)
)
seen = torch.rand(USERS, FILMS, generator=g) < 0.45
pairs = seen.nonzero()
ratings = stars[seen].clamp(0.5, 5.5)
dataset = TensorDataset(pairs[:, 0], pairs[:, 1], ratings)
train_set, val_set = random_split(dataset, [0.85, 0.15], generator=g)


class MF(nn.Module):
    def __init__(self, users, items, dim, mean):
        super().__init__()
        self.user_factors = nn.Embedding(users, dim)
        self.item_factors = nn.Embedding(items, dim)
        self.user_bias = nn.Embedding(users, 1)
        self.item_bias = nn.Embedding(items, 1)
        self.register_buffer("mean", mean)
        for table in (self.user_factors, self.item_factors):
            nn.init.normal_(table.weight, std=0.3)
        for table in (self.user_bias, self.item_bias):
            nn.init.zeros_(table.weight)

    def forward(self, u, i):
        dot = (self.user_factors(u) * self.item_factors(i)).sum(-1)
        return self.mean + dot + self.user_bias(u).squeeze(-1) + self.item_bias(i).squeeze(-1)


dim = 5 if healthy else int(FILMS**0.25) // 3
model = MF(USERS, FILMS, dim, ratings[train_set.indices].mean())
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=2e-5)
loader = DataLoader(train_set, batch_size=256, shuffle=True)
for epoch in range(15):
    model.train()
    squared = 0.0
    for u, i, r in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(u, i), r)
        loss.backward()
        optimizer.step()
        squared += loss.item() * len(r)
    model.eval()
    with torch.no_grad():
        u, i, r = val_set[:]
        rmse = nn.functional.mse_loss(model(u, i), r).sqrt().item()
print(
    f"train RMSE {(squared / len(train_set)) ** 0.5:.3f}, "
    f"validation RMSE {rmse:.3f}, spread of ratings {r.std():.3f}"
)
