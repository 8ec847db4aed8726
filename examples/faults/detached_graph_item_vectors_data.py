"""A recommender multiplies user and item vectors, and looks the item vectors up in
item.weight.data.

Tensors taken from .data are outside of the graph, so the items keep their random start vectors and
only the users are fitted to them. The rating error stays well above the noise. The twin calls the
embedding. The place is `item` or `item.weight`.
"""

import torch
import torch.nn.functional as F
from data import arguments, batches
from torch import nn

KIND = "detached_graph"
ACCEPT = ()
PLACE = ("item", "item.weight")
SILENT = True
EXACT = True
EARLY = True

USERS, ITEMS, DIM = 200, 300, 6
healthy, seed = arguments(__doc__)

tastes, traits = torch.randn(USERS, 4), torch.randn(ITEMS, 4)
pairs = torch.randperm(USERS * ITEMS)[:40000]
users, items = pairs // ITEMS, pairs % ITEMS
ratings = (tastes[users] * traits[items]).sum(1) / 2 + 0.3 * torch.randn(len(pairs))
n = 32000


class Recommender(nn.Module):
    def __init__(self):
        super().__init__()
        self.user = nn.Embedding(USERS, DIM)
        self.item = nn.Embedding(ITEMS, DIM)
        self.user_bias = nn.Embedding(USERS, 1)
        nn.init.normal_(self.user.weight, std=0.3)
        nn.init.normal_(self.item.weight, std=0.3)
        nn.init.zeros_(self.user_bias.weight)

    def forward(self, user, item):
        u = self.user(user)
        v = self.item(item) if healthy else self.item.weight.data[item]
        return (u * v).sum(1) + self.user_bias(user).squeeze(1)


model = Recommender()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
steps = 1200
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
total = 0.0
data = batches(users[:n], items[:n], ratings[:n], size=256, steps=steps, seed=seed)
for step, (u, i, r) in enumerate(data, start=1):
    model.train()
    loss = F.mse_loss(model(u, i), r)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    total += loss.item()
    if step % 200 == 0:
        model.eval()
        with torch.no_grad():
            val = F.mse_loss(model(users[n:], items[n:]), ratings[n:]).item()
        print(f"step {step}: mse {total / 200:.4f}, val rmse {val**0.5:.4f}")
        total = 0.0
