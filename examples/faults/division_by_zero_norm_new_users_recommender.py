"""A recommender by the cosine between an item and the sum of the items a user liked before.

New users have liked nothing: their vector is 0, its norm 0 and the quotient NaN. The twin uses
F.normalize, which has an epsilon, so that new users are judged by the item's own bias. The place
is the model.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "division_by_zero_norm"
ACCEPT = ()
PLACE = ("user*", "")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
GROUPS, EACH, PAIRS = 6, 10, 5000
g = torch.Generator().manual_seed(seed)
favourite = torch.randint(0, GROUPS, (PAIRS,), generator=g)
liked = favourite[:, None] * EACH + torch.randint(0, EACH, (PAIRS, 6), generator=g) + 1
length = torch.randint(2, 7, (PAIRS,), generator=g)
length[torch.rand(PAIRS, generator=g) < 0.03] = 0  # new users
liked[torch.arange(6) >= length[:, None]] = 0
likes = torch.rand(PAIRS, generator=g) < 0.5
other = (favourite + torch.randint(1, GROUPS, (PAIRS,), generator=g)) % GROUPS
item = torch.where(likes, favourite, other) * EACH + torch.randint(0, EACH, (PAIRS,), generator=g)
data = TensorDataset(liked, item + 1, likes.float())
train, val = torch.utils.data.random_split(data, [4200, 800])


class UserTower(nn.Module):
    def __init__(self, table):
        super().__init__()
        self.table = table

    def forward(self, liked):
        vector = self.table(liked).sum(1)
        if healthy:
            return F.normalize(vector, dim=1)
        return vector / vector.norm(dim=1, keepdim=True)


class TwoTower(nn.Module):
    def __init__(self, items=GROUPS * EACH, size=16):
        super().__init__()
        self.table = nn.Embedding(items + 1, size, padding_idx=0)
        self.user = UserTower(self.table)
        self.bias = nn.Embedding(items + 1, 1)
        nn.init.zeros_(self.bias.weight)

    def forward(self, liked, item):
        cosine = (self.user(liked) * F.normalize(self.table(item), dim=1)).sum(1)
        return 6.0 * cosine + self.bias(item).squeeze(1) - 1.0


model = TwoTower()
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
for epoch in range(5):
    for user_items, candidate, label in DataLoader(train, batch_size=70, shuffle=True):
        optimizer.zero_grad()
        loss = criterion(model(user_items, candidate), label)
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        user_items, candidate, label = next(iter(DataLoader(val, batch_size=800)))
        out = model(user_items, candidate)
        acc = ((out > 0) == (label > 0.5)).float().mean().item()
    print(f"{epoch} {loss.item():.3f} val {criterion(out, label).item():.3f} accuracy {acc:.3f}")
