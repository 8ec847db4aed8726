"""A film recommender whose item factors are made by Embedding.from_pretrained from random numbers,
and so never learn.

The user likes to set the initial values of the table of items himself and takes from_pretrained
for it, which freezes the table by default; nothing was pretrained. The place is the module
item_factors.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "frozen_parameters"
ACCEPT = ("parameters_not_in_optimizer",)
PLACE = ("item_factors*",)
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

USERS, ITEMS, RANK = 400, 200, 8


def ratings(n, seed):
    g = torch.Generator().manual_seed(seed)
    tastes = torch.randn(USERS, 4, generator=g)
    films = torch.randn(ITEMS, 4, generator=g)
    bias = 0.4 * torch.randn(ITEMS, generator=g)
    user = torch.randint(0, USERS, (n,), generator=g)
    item = (torch.rand(n, generator=g) ** 1.6 * ITEMS).long()
    stars = (
        3.3
        + bias[item]
        + 0.45 * (tastes[user] * films[item]).sum(1)
        + 0.4 * torch.randn(n, generator=g)
    )
    return user, item, stars.clamp(1, 5)


class Factorisation(nn.Module):
    def __init__(self, mean):
        super().__init__()
        self.mean = mean
        self.user_factors = nn.Embedding(USERS, RANK)
        nn.init.normal_(self.user_factors.weight, std=0.1)
        self.item_factors = nn.Embedding.from_pretrained(
            0.1 * torch.randn(ITEMS, RANK), freeze=not healthy
        )
        self.user_bias = nn.Embedding(USERS, 1)
        self.item_bias = nn.Embedding(ITEMS, 1)
        nn.init.zeros_(self.user_bias.weight)
        nn.init.zeros_(self.item_bias.weight)

    def forward(self, user, item):
        match = (self.user_factors(user) * self.item_factors(item)).sum(1)
        return self.mean + match + self.user_bias(user).squeeze(1) + self.item_bias(item).squeeze(1)


user, item, stars = ratings(40000, seed)
cut = 32000
loader = DataLoader(
    TensorDataset(user[:cut], item[:cut], stars[:cut]), batch_size=512, shuffle=True
)
model = Factorisation(stars[:cut].mean().item())
trained = [p for p in model.parameters() if p.requires_grad]
optimizer = torch.optim.Adam(trained, lr=0.005)

for epoch in range(14):
    squares = 0.0
    for u, i, s in loader:
        loss = nn.functional.mse_loss(model(u, i), s)
        factors = model.user_factors(u).pow(2).mean() + model.item_factors(i).pow(2).mean()
        optimizer.zero_grad()
        (loss + 0.05 * factors).backward()
        optimizer.step()
        squares += loss.item() * len(u)
    with torch.no_grad():
        val = nn.functional.mse_loss(model(user[cut:], item[cut:]), stars[cut:]).sqrt().item()
    print(f"epoch {epoch} train rmse {(squares / cut) ** 0.5:.3f} validation rmse {val:.3f}")
