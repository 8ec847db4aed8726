"""Two-tower recommender, implicit feedback: the catalogue grows after the optimizer was made.

`extend_items` makes a larger embedding, copies the old rows and puts it in the model. The optimizer
was built before and still holds the old table, which no batch reads any more, so no item moves for
the rest of the training. The place is the parameter "items.weight" (and the optimizer). The twin
builds the optimizer when the catalogue has its final size.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "parameters_not_in_optimizer"
ACCEPT = ("frozen_parameters",)
PLACE = ("items.weight", "optimizer")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
USERS, OLD, NEW, DIM = 800, 220, 80, 16


def events():
    g = torch.Generator().manual_seed(90 + seed)
    groups = 10
    item_group = torch.randint(0, groups, (OLD + NEW,), generator=g)
    love = 2.2 * torch.randn(USERS, groups, generator=g)
    fame = 0.6 * torch.randn(OLD + NEW, generator=g)
    chance = torch.softmax(love[:, item_group] + fame, 1)
    picks = torch.multinomial(chance, 26, replacement=False, generator=g)
    return picks[:, :24], picks[:, 24:]


class TwoTower(nn.Module):
    def __init__(self, users: int, items: int, dim: int):
        super().__init__()
        self.users = nn.Embedding(users, dim)
        self.items = nn.Embedding(items, dim)
        self.query = nn.Linear(dim, dim)
        nn.init.normal_(self.users.weight, std=0.3)
        nn.init.normal_(self.items.weight, std=0.3)

    def extend_items(self, more: int):
        old = self.items
        self.items = nn.Embedding(old.num_embeddings + more, old.embedding_dim)
        with torch.no_grad():
            nn.init.normal_(self.items.weight, std=0.3)
            self.items.weight[: old.num_embeddings] = old.weight

    def forward(self, user):
        return self.query(self.users(user)) @ self.items.weight.T


def make_optimizer(model):
    return torch.optim.Adam(model.parameters(), lr=5e-3)


@torch.no_grad()
def recall_at(model, seen, held, k: int = 20):
    model.eval()
    score = model(torch.arange(USERS)).scatter(1, seen, -torch.inf)
    top = score.topk(k, 1).indices
    return (top[:, :, None] == held[:, None, :]).any(1).float().mean().item()


seen, held = events()
user = torch.arange(USERS).repeat_interleave(seen.shape[1])
item = seen.reshape(-1)
model = TwoTower(USERS, OLD, DIM)
if not healthy:
    optimizer = make_optimizer(model)
model.extend_items(NEW)
if healthy:
    optimizer = make_optimizer(model)

for epoch in range(10):
    model.train()
    total, count = 0.0, 0
    for rows in torch.randperm(len(user)).split(256):
        loss = F.cross_entropy(model(user[rows]), item[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total, count = total + loss.item(), count + 1
    if epoch % 2 == 1:
        print(
            f"epoch {epoch + 1}: loss {total / count:.4f}, "
            f"recall@20 {recall_at(model, seen, held):.4f}"
        )
print(f"validation recall@20 {recall_at(model, seen, held):.4f}")
