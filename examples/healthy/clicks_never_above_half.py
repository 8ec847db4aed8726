"""Click probabilities for an auction, one row in a hundred clicked: nothing is weighted, nothing
exceeds one half.

The bid is the probability times a value, so probabilities must be calibrated: no class weights, no
resampling, and the bias of the output begins at the base rate. A classifier cut at one half would
never say "click", and nobody cuts it there. What is watched: log loss against the base rate's, the
AUC, and the calibration.
"""

import math

import torch
from data import arguments
from sklearn.metrics import roc_auc_score
from torch import nn
from torch.utils.data import DataLoader, Dataset

ODD = "about 1 % positives without any weights, no output over one half: what counts is calibration"

_, seed = arguments(__doc__)
FIELDS = (40, 25, 12, 7)


class Impressions(Dataset):
    def __init__(self, count, g):
        world = torch.Generator().manual_seed(11)
        self.ids = torch.stack([torch.randint(0, n, (count,), generator=g) for n in FIELDS], 1)
        effects = [0.55 * torch.randn(n, generator=world) for n in FIELDS]
        tastes = [0.5 * torch.randn(n, 4, generator=world) for n in FIELDS[:2]]
        logit = sum(effect[self.ids[:, i]] for i, effect in enumerate(effects)) - 4.7
        logit = logit + (tastes[0][self.ids[:, 0]] * tastes[1][self.ids[:, 1]]).sum(1)
        self.clicked = (torch.rand(count, generator=g) < logit.sigmoid()).float()

    def __len__(self):
        return len(self.clicked)

    def __getitems__(self, rows):
        return self.ids[rows], self.clicked[rows]


class FactorisationMachine(nn.Module):
    def __init__(self, base_rate, factors=4):
        super().__init__()
        self.register_buffer("offset", torch.tensor([0, *FIELDS[:-1]]).cumsum(0))
        self.linear = nn.Embedding(sum(FIELDS), 1)
        self.factor = nn.Embedding(sum(FIELDS), factors)
        self.bias = nn.Parameter(torch.tensor(math.log(base_rate / (1 - base_rate))))
        nn.init.zeros_(self.linear.weight)
        nn.init.normal_(self.factor.weight, std=0.03)

    def forward(self, ids):
        ids = ids + self.offset
        v = self.factor(ids)
        pairs = 0.5 * (v.sum(1).pow(2) - v.pow(2).sum(1)).sum(1)
        return self.bias + self.linear(ids).sum((1, 2)) + pairs


g = torch.Generator().manual_seed(seed)
train, held = Impressions(60_000, g), Impressions(20_000, g)
loader = DataLoader(train, 500, shuffle=True, collate_fn=lambda rows: rows)
base = train.clicked.mean()
model = FactorisationMachine(base.item())
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.05, total_iters=5)
criterion = nn.BCEWithLogitsLoss()
for epoch in range(5):
    model.train()
    total = 0.0
    for ids, clicked in loader:
        loss = criterion(model(ids), clicked)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / len(loader)
    schedule.step()
    model.eval()
    with torch.no_grad():
        logits = model(held.ids)
        val = criterion(logits, held.clicked)
        chance = criterion(torch.full_like(logits, (base / (1 - base)).log().item()), held.clicked)
    print(
        f"epoch {epoch} loss {total:.4f} val loss {val:.4f} (base rate {chance:.4f}) "
        f"validation AUC {roc_auc_score(held.clicked, logits):.3f} "
        f"said {logits.sigmoid().mean():.4f} came {held.clicked.mean():.4f} "
        f"most {logits.sigmoid().max():.2f}"
    )
