"""Click prediction with hashed ids: 4 % of impressions are clicked, and it is mostly chance."""

import numpy as np
import torch
from data import arguments
from sklearn.metrics import roc_auc_score
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = (
    "rare positives, unweighted: no prediction is above 0.5 and the loss falls by little; "
    "calibrated scores are what is wanted"
)

_, seed = arguments(__doc__)
rng = np.random.default_rng(seed)
N, USERS, ADS, PLACES = 24000, 60, 40, 8
user, ad, place = (rng.integers(0, k, N) for k in (USERS, ADS, PLACES))
taste, theme = rng.normal(0, 0.9, (USERS, 2)), rng.normal(0, 0.9, (ADS, 2))
seen = rng.normal(0, 1.1, PLACES)
score = (taste[user] * theme[ad]).sum(1) + seen[place] - 4.3
click = (rng.random(N) < 1 / (1 + np.exp(-score))).astype(np.float32)
ids = torch.tensor(np.stack([user, USERS + ad, USERS + ADS + place], 1))
click = torch.tensor(click)
cut = 18000


class FactorMachine(nn.Module):
    def __init__(self, rows, base_rate, dim=4):
        super().__init__()
        self.first = nn.Embedding(rows, 1)
        self.second = nn.Embedding(rows, dim)
        self.bias = nn.Parameter(torch.logit(base_rate))
        nn.init.zeros_(self.first.weight)
        nn.init.normal_(self.second.weight, 0, 0.1)

    def forward(self, ids):
        v = self.second(ids)
        pairs = 0.5 * (v.sum(1).pow(2) - v.pow(2).sum(1)).sum(1)
        return self.bias + self.first(ids).sum((1, 2)) + pairs


model = FactorMachine(USERS + ADS + PLACES, click[:cut].mean())
train = DataLoader(TensorDataset(ids[:cut], click[:cut]), batch_size=400, shuffle=True)
optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=0.02)
criterion = nn.BCEWithLogitsLoss()
for epoch in range(12):
    model.train()
    total = 0.0
    for xb, yb in train:
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        optimizer.step()
        total += loss.item() / len(train)
    model.eval()
    with torch.no_grad():
        logits = model(ids[cut:])
    auc = roc_auc_score(click[cut:].numpy(), logits.numpy())
    print(
        f"epoch {epoch:2d} loss {total:.4f} val {criterion(logits, click[cut:]):.4f} AUC {auc:.3f} "
        f"mean {logits.sigmoid().mean():.4f} clicked {click[cut:].mean():.4f}"
    )
