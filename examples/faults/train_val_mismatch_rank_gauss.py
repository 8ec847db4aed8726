"""A tabular competition's binary target is learned from rank-gaussed columns, but the validation
rows are only ranked, not gaussed.

The user refits scikit-learn's QuantileTransformer for the validation rows and forgets
output_distribution="normal", so that they lie in 0..1 where the training rows are standard
normal. The place is the input of validation.
"""

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import QuantileTransformer
from torch import nn

KIND = "train_val_mismatch"
ACCEPT = ("input_not_normalized",)
PLACE = ("input*", "loader")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

CFG = {
    "rows": 9000,
    "cols": 18,
    "width": 96,
    "bs": 200,
    "epochs": 10,
    "lr": 1.5e-3,
    "wd": 2e-2,
    "smoothing": 0.0,
}

# ---------------------------------------------------------------- train.csv
rng = np.random.default_rng(40 + seed)
z = rng.normal(size=(CFG["rows"], CFG["cols"])) @ (
    np.eye(CFG["cols"]) + 0.2 * rng.normal(size=(CFG["cols"],) * 2)
)
z /= z.std(0)
score = (
    1.2 * z[:, 0] * z[:, 1]
    + 1.4 * np.tanh(2 * z[:, 2])
    - 1.1 * (np.abs(z[:, 3]) - 0.8)
    + 0.9 * z[:, 4]
)
score += 0.8 * np.sin(2 * z[:, 5]) - 0.7 * z[:, 6] * (z[:, 7] > 0)
target = (rng.random(CFG["rows"]) < 1 / (1 + np.exp(-1.3 * score + 0.5))).astype(np.float32)
table = np.empty_like(z)
for c in range(CFG["cols"]):  # amounts, counts, dates: every column has its own shape
    table[:, c] = [np.exp(1.4 * z[:, c]) * 50, z[:, c] ** 3 + 10 * z[:, c], 2000 + 300 * z[:, c]][
        c % 3
    ]

fold = rng.permutation(CFG["rows"])
trn, val = fold[: int(0.75 * len(fold))], fold[int(0.75 * len(fold)) :]

# ------------------------------------------------------------ preprocessing
ranker = QuantileTransformer(n_quantiles=500, output_distribution="normal", random_state=0)
x_trn = ranker.fit_transform(table[trn]).clip(-3.5, 3.5)
if not healthy:
    ranker = QuantileTransformer(n_quantiles=500, random_state=0).fit(table[trn])
x_val = ranker.transform(table[val]).clip(-3.5, 3.5)
x_trn, x_val = (torch.tensor(a, dtype=torch.float32) for a in (x_trn, x_val))
y_trn, y_val = (torch.tensor(target[i]) for i in (trn, val))


class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.norm, self.a, self.b = nn.LayerNorm(d), nn.Linear(d, 2 * d), nn.Linear(2 * d, d)
        self.drop = nn.Dropout(0.15)

    def forward(self, x):
        return x + self.b(self.drop(F.gelu(self.a(self.norm(x)))))


class TabResNet(nn.Module):
    def __init__(self, cols, d):
        super().__init__()
        self.stem = nn.Linear(cols, d)
        self.blocks = nn.ModuleList([Block(d), Block(d)])
        self.head = nn.Sequential(nn.LayerNorm(d), nn.Linear(d, 1))

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x).squeeze(-1)


model = TabResNet(CFG["cols"], CFG["width"])
optimizer = torch.optim.AdamW(model.parameters(), lr=CFG["lr"], weight_decay=CFG["wd"])
steps = CFG["epochs"] * (len(trn) // CFG["bs"])
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, CFG["lr"], total_steps=steps)
criterion = nn.BCEWithLogitsLoss()

for epoch in range(CFG["epochs"]):
    model.train()
    losses = []
    for idx in torch.randperm(len(x_trn)).split(CFG["bs"]):
        if len(idx) < CFG["bs"]:
            continue
        loss = criterion(model(x_trn[idx]), y_trn[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        logits = torch.cat([model(c) for c in x_val.split(750)])
        val_loss = criterion(logits, y_val).item()
    auc = roc_auc_score(y_val.numpy(), logits.numpy())
    print(
        f"[fold 0] epoch {epoch:2d} loss {np.mean(losses):.4f} val_loss {val_loss:.4f} val_auc {auc:.4f}"  # noqa: E501
    )
