"""Predicting credit default from applications; outliers are dropped from the features but the
labels are cut by length.

After the filter the feature table is shorter, an assertion on the lengths complained, and the
user "fixed" it with `y[: len(x)]`: from the first dropped row on, each row has an earlier
customer's label. The place is the input (the target). The twin filters both by the same mask.
"""

import numpy as np
import torch
from data import arguments
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from torch import nn

KIND = "label_misalignment"
ACCEPT = ("label_noise",)
PLACE = ("input*", "loader", "loss")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)

# ---------------------------------------------------------------- load
N = 9000
rng = np.random.default_rng(seed + 77)
num = {
    "income": rng.lognormal(10.3, 0.5, N),
    "amount": rng.lognormal(9.0, 0.8, N),
    "months": rng.choice([12, 24, 36, 48, 60], N).astype(float),
    "age": rng.uniform(19, 75, N),
    "open_lines": rng.poisson(4, N).astype(float),
    "late_12m": rng.poisson(rng.gamma(0.5, 1.0, N)).astype(float),
    "utilisation": rng.beta(2, 3, N),
}
cat = {
    "job": rng.choice(24, N, p=rng.dirichlet(np.full(24, 2.0))),
    "region": rng.choice(16, N),
    "purpose": rng.choice(8, N),
    "channel": rng.choice(4, N, p=[0.5, 0.3, 0.15, 0.05]),
}
cards = [24, 16, 8, 4]
job_risk, region_risk, purpose_risk = (
    rng.normal(0, 0.9, 24),
    rng.normal(0, 0.4, 16),
    rng.normal(0, 0.6, 8),
)
burden = num["amount"] / num["months"] / num["income"] * 120
score = (
    -0.9
    + 1.1 * np.log(burden)
    + 0.9 * num["late_12m"]
    + 2.2 * (num["utilisation"] - 0.4)
    + job_risk[cat["job"]]
    + region_risk[cat["region"]]
    + purpose_risk[cat["purpose"]]
    - 0.03 * (num["age"] - 40)
    + 0.6 * (num["open_lines"] > 7)
)
default = (rng.random(N) < 1 / (1 + np.exp(-1.6 * score))).astype(np.float32)

# ---------------------------------------------------------------- clean
X_num = np.column_stack(list(num.values()))
X_num[:, :2] = np.log(X_num[:, :2])
X_cat = np.column_stack(list(cat.values()))
lo, hi = np.percentile(X_num, [0.2, 99.8], axis=0)
keep = ((X_num >= lo) & (X_num <= hi)).all(1)
X_num, X_cat = X_num[keep], X_cat[keep]
y = default[keep] if healthy else default[: len(X_num)]
print(f"dropped {(~keep).sum()} outliers, {len(X_num)} rows left, default rate {y.mean():.3f}")
assert len(X_num) == len(X_cat) == len(y)

idx_tr, idx_va = train_test_split(np.arange(len(y)), test_size=0.2, random_state=seed, stratify=y)
mu, sd = X_num[idx_tr].mean(0), X_num[idx_tr].std(0)
X_num = torch.tensor((X_num - mu) / sd, dtype=torch.float32)
X_cat, y = torch.tensor(X_cat), torch.tensor(y)


# ---------------------------------------------------------------- model
class EntityEmbeddingNet(nn.Module):
    def __init__(self, cards, n_num, hidden=(64, 32), p=0.1):
        super().__init__()
        self.embeds = nn.ModuleList(nn.Embedding(c, min(8, (c + 1) // 2)) for c in cards)
        width = sum(e.embedding_dim for e in self.embeds) + n_num
        layers = []
        for h in hidden:
            layers += [nn.Linear(width, h), nn.BatchNorm1d(h), nn.ReLU(), nn.Dropout(p)]
            width = h
        self.mlp = nn.Sequential(*layers, nn.Linear(width, 1))

    def forward(self, x_cat, x_num):
        e = [emb(x_cat[:, i]) for i, emb in enumerate(self.embeds)]
        return self.mlp(torch.cat([*e, x_num], 1)).squeeze(1)


model = EntityEmbeddingNet(cards, X_num.shape[1])
opt = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-2)
bce = nn.BCEWithLogitsLoss()
idx_tr, idx_va = torch.tensor(idx_tr), torch.tensor(idx_va)
EPOCHS, BS = 8, 128

# ---------------------------------------------------------------- train
for epoch in range(EPOCHS):
    model.train()
    tot = 0.0
    perm = idx_tr[torch.randperm(len(idx_tr))]
    for i in range(0, len(perm) - BS + 1, BS):
        b = perm[i : i + BS]
        loss = bce(model(X_cat[b], X_num[b]), y[b])
        opt.zero_grad()
        loss.backward()
        opt.step()
        tot += loss.item()
    model.eval()
    with torch.no_grad():
        logit = model(X_cat[idx_va], X_num[idx_va])
    auc = roc_auc_score(y[idx_va].numpy(), logit.numpy())
    print(
        f"epoch {epoch + 1}/{EPOCHS}  train {tot / (len(perm) // BS):.4f}  "
        f"valid {bce(logit, y[idx_va]).item():.4f}  AUC {auc:.4f}"
    )
