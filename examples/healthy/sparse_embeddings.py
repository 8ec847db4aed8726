"""A recommender with sparse embeddings; most rows are seen a few times only."""

import torch
import torch.nn.functional as F
from data import arguments, batches
from torch import nn

ODD = "sparse gradients, most rows of the tables get no gradient in a step, targets of 1 to 5"

_, seed = arguments(__doc__)
people, things, n = 600, 200, 8000
user = torch.randint(people, (n,))
item = (torch.rand(n).square() * things).long()
quality, taste = torch.randn(things), torch.randn(people)
stars = (3 + quality[item] + 0.5 * taste[user] + 0.2 * torch.randn(n)).clamp(1, 5)


class Recommender(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.users = nn.Embedding(people, width, sparse=True)
        self.items = nn.Embedding(things, width, sparse=True)
        self.user_bias = nn.Embedding(people, 1, sparse=True)
        self.item_bias = nn.Embedding(things, 1, sparse=True)
        for table in (self.users, self.items, self.user_bias, self.item_bias):
            nn.init.normal_(table.weight, std=0.05)

    def forward(self, who, what):
        match = (self.users(who) * self.items(what)).sum(1)
        return 3 + match + self.user_bias(who)[:, 0] + self.item_bias(what)[:, 0]


model = Recommender()
optimizer = torch.optim.SparseAdam(model.parameters(), lr=2e-2)
for who, what, rating in batches(user, item, stars, size=128, steps=260, seed=seed):
    loss = F.mse_loss(model(who, what), rating)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}")
