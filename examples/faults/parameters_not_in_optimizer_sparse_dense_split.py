"""A recommender with two optimizers, split by name: the item table falls between the two lists.

SparseAdam takes what starts with "user_table", Adam what belongs to the "scorer"; the item table
and its bias are in neither and stay random. The squared error ends far above the noise of the
ratings. The place is the optimizer.
"""

import torch
from data import arguments, batches
from torch import nn

KIND = "parameters_not_in_optimizer"
ACCEPT = ()
PLACE = ("item_*", "*.item_*", "optimizer")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
USERS, ITEMS, RATINGS, RANK = 120, 90, 8000, 4


class Recommender(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.user_table = nn.Embedding(USERS, dim, sparse=True)
        self.item_table = nn.Embedding(ITEMS, dim, sparse=True)
        self.item_bias = nn.Embedding(ITEMS, 1, sparse=True)
        self.scorer = nn.Linear(dim, 1)
        for table in (self.user_table, self.item_table):
            nn.init.normal_(table.weight, std=0.3)
        nn.init.zeros_(self.item_bias.weight)

    def forward(self, user, item):
        product = self.user_table(user) * self.item_table(item)
        return (self.scorer(product) + self.item_bias(item)).squeeze(1)


taste, trait = torch.randn(USERS, RANK), torch.randn(ITEMS, RANK)
popular = 0.7 * torch.randn(ITEMS)
user, item = torch.randint(USERS, (RATINGS,)), torch.randint(ITEMS, (RATINGS,))
rating = (taste[user] * trait[item]).sum(1) / 2 + popular[item] + 0.3 * torch.randn(RATINGS)
rating = (rating - rating.mean()) / rating.std()
held = slice(7000, None)

model = Recommender()
sparse = [p for n, p in model.named_parameters() if n.startswith("user_table")]
if healthy:
    sparse = [p for n, p in model.named_parameters() if n.startswith(("user_", "item_"))]
dense = [p for n, p in model.named_parameters() if n.startswith("scorer")]
optimizers = [torch.optim.SparseAdam(sparse, lr=0.006), torch.optim.Adam(dense, lr=0.006)]
for u, i, r in batches(user[:7000], item[:7000], rating[:7000], size=100, steps=600, seed=seed):
    loss = ((model(u, i) - r) ** 2).mean()
    for optimizer in optimizers:
        optimizer.zero_grad()
    loss.backward()
    for optimizer in optimizers:
        optimizer.step()
with torch.no_grad():
    test = ((model(user[held], item[held]) - rating[held]) ** 2).mean()
print(f"loss {loss.item():.3f}, held-out squared error {test:.3f}")
