"""A click model for adverts whose user and advert tables nobody trains.

The tables were to have an optimizer of their own (SparseAdam), so the main one is built from the
dense modules only. The second optimizer was dropped again when the tables turned out to be small,
and the first one's list stayed. The tables get gradients and keep their random rows. The place is
the optimizer: `users` and `adverts` are missing. The twin gives it all of `model.parameters()`.
"""

import numpy as np
import torch
from data import arguments
from sklearn.metrics import roc_auc_score
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "parameters_not_in_optimizer"
ACCEPT = ()
PLACE = ("optimizer", "users", "users.weight", "adverts", "adverts.weight")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
USERS, ADVERTS = 200, 80


def impressions(n, r):
    taste, topic = r.normal(0, 1, (USERS, 3)), r.normal(0, 1, (ADVERTS, 3))
    pull = r.normal(0, 0.7, ADVERTS)
    user, advert = r.integers(0, USERS, n), r.integers(0, ADVERTS, n)
    context = r.normal(0, 1, (n, 4))
    logit = 1.2 * (taste[user] * topic[advert]).sum(1) + pull[advert] + 0.5 * context[:, 0] - 1.0
    clicked = r.random(n) < 1 / (1 + np.exp(-logit))
    return [
        torch.tensor(a)
        for a in (user, advert, context.astype("float32"), clicked.astype("float32"))
    ]


class ClickModel(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.users = nn.Embedding(USERS, dim)
        self.adverts = nn.Embedding(ADVERTS, dim)
        nn.init.normal_(self.users.weight, std=0.1)
        nn.init.normal_(self.adverts.weight, std=0.1)
        self.context = nn.Linear(4, dim)
        self.mlp = nn.Sequential(nn.Linear(4 * dim, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, user, advert, context):
        u, a = self.users(user), self.adverts(advert)
        joined = torch.cat([u, a, u * a, self.context(context)], 1)
        return self.mlp(joined).squeeze(1)


r = np.random.default_rng(seed)
data = impressions(30_000, r)
train_set = TensorDataset(*[part[:24_000] for part in data])
held_out = [part[24_000:] for part in data]
loader = DataLoader(train_set, batch_size=256, shuffle=True)

model = ClickModel()
criterion = nn.BCEWithLogitsLoss()
dense = [*model.context.parameters(), *model.mlp.parameters()]
optimizer = torch.optim.AdamW(model.parameters() if healthy else dense, lr=1e-2, weight_decay=0.2)

for epoch in range(7):
    model.train()
    total = 0.0
    for user, advert, context, clicked in loader:
        loss = criterion(model(user, advert, context), clicked)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        logit = model(*held_out[:3])
        val_loss = criterion(logit, held_out[3])
    auc = roc_auc_score(held_out[3].numpy(), logit.numpy())
    print(f"epoch {epoch} train {total / len(loader):.4f} val {val_loss:.4f} AUC {auc:.4f}")
