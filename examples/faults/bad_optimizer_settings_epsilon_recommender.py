"""Matrix factorisation by Adam with eps=1.0, for "numerical stability".

The gradients of the embeddings are about a thousandth, so eps swamps their root mean square and
the steps are a thousand times too small. The place is the optimizer.
"""

import torch
from data import arguments, batches
from torch import nn

KIND = "bad_optimizer_settings"
ACCEPT = ()
PLACE = ("optimizer",)
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
USERS, ITEMS = 120, 80
g = torch.Generator().manual_seed(seed)
taste, genre = torch.randn(USERS, 3, generator=g), torch.randn(ITEMS, 3, generator=g)
user = torch.randint(0, USERS, (8000,), generator=g)
item = torch.randint(0, ITEMS, (8000,), generator=g)
rating = (taste[user] * genre[item]).sum(1) / 3**0.5 + 0.3 * torch.randn(8000, generator=g)
split = 7000


class Recommender(nn.Module):
    def __init__(self, k=4):
        super().__init__()
        self.users = nn.Embedding(USERS, k)
        self.items = nn.Embedding(ITEMS, k)
        self.user_bias = nn.Embedding(USERS, 1)
        self.item_bias = nn.Embedding(ITEMS, 1)
        for table in (self.users, self.items):
            nn.init.normal_(table.weight, std=0.3)
        for table in (self.user_bias, self.item_bias):
            nn.init.zeros_(table.weight)

    def forward(self, u, i):
        bias = self.user_bias(u) + self.item_bias(i)
        return (self.users(u) * self.items(i)).sum(1) + bias.squeeze(1)


model = Recommender()
optimizer = torch.optim.Adam(model.parameters(), lr=0.03, eps=1e-8 if healthy else 1.0)
scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.05, total_iters=350)
loss_fn = nn.MSELoss()
for u, i, r in batches(user[:split], item[:split], rating[:split], size=200, steps=350, seed=seed):
    optimizer.zero_grad()
    loss = loss_fn(model(u, i), r)
    loss.backward()
    optimizer.step()
    scheduler.step()
with torch.no_grad():
    test = loss_fn(model(user[split:], item[split:]), rating[split:]).item()
print(f"train mse {loss.item():.3f}, test mse {test:.3f}")
