"""A churn model on 1,500 customers, Kaggle style, with embeddings and a wide MLP; the training
never stops.

The script has early stopping with the best weights kept, but the patience is larger than the
number of epochs, and the last weights are what is submitted. The validation loss has its minimum
after a few epochs and trebles. The place is the loop.
"""

import copy

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments, standardise
from sklearn.metrics import roc_auc_score
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "overfit"
ACCEPT = ()
PLACE = ("loop",)
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

EPOCHS = 60
PATIENCE = 3 if healthy else 100
LR = 1e-3

# --- data -----------------------------------------------------------------------------------
rng = np.random.default_rng(seed + 31)
N = 2100
plan, region, agent = rng.integers(0, 5, N), rng.integers(0, 20, N), rng.integers(0, 60, N)
tenure, bill, calls = rng.exponential(20, N), rng.gamma(5, 12, N), rng.poisson(1.5, N)
usage = rng.normal(0, 1, (N, 10))
effects = np.random.default_rng(99)
plan_e, region_e = effects.normal(0, 0.7, 5), effects.normal(0, 0.5, 20)
logit = (
    -0.4
    + plan_e[plan]
    + region_e[region]
    - 0.05 * (tenure - 20)
    + 0.5 * (calls - 1.5)
    + 0.02 * (bill - 60) * (usage[:, 0] < 0)
    + 0.7 * usage[:, 1] * usage[:, 2]
)
churn = (rng.random(N) < 1 / (1 + np.exp(-logit))).astype(np.float32)
numbers = np.column_stack([np.log1p(tenure), bill, calls, usage]).astype(np.float32)
codes = np.column_stack([plan, region, agent])
order = rng.permutation(N)
tr, va = order[:1500], order[1500:]
x, x_val = standardise(torch.from_numpy(numbers[tr]), torch.from_numpy(numbers[va]))
c, c_val = torch.from_numpy(codes[tr]), torch.from_numpy(codes[va])
y, y_val = torch.from_numpy(churn[tr]), torch.from_numpy(churn[va])


# --- model ----------------------------------------------------------------------------------
class ChurnNet(nn.Module):
    def __init__(self, sizes=(5, 20, 60), dims=(3, 6, 8), n_numbers=13, width=256):
        super().__init__()
        self.embeddings = nn.ModuleList(
            nn.Embedding(n, d) for n, d in zip(sizes, dims, strict=False)
        )
        for e in self.embeddings:
            nn.init.normal_(e.weight, std=0.1)
        self.mlp = nn.Sequential(
            nn.Linear(n_numbers + sum(dims), width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Linear(width, 1),
        )

    def forward(self, x, c):
        parts = [e(c[:, k]) for k, e in enumerate(self.embeddings)]
        return self.mlp(torch.cat([x, *parts], 1)).squeeze(1)


# --- training -------------------------------------------------------------------------------
def predict(model):
    model.eval()
    with torch.no_grad():
        logits = model(x_val, c_val)
    return F.binary_cross_entropy_with_logits(logits, y_val).item(), logits


loader = DataLoader(TensorDataset(x, c, y), batch_size=64, shuffle=True)
model = ChurnNet()
optimizer = torch.optim.Adam(model.parameters(), lr=LR)
best, best_state, bad = float("inf"), None, 0
for epoch in range(EPOCHS):
    model.train()
    train_loss = 0.0
    for xb, cb, yb in loader:
        optimizer.zero_grad()
        loss = F.binary_cross_entropy_with_logits(model(xb, cb), yb)
        loss.backward()
        optimizer.step()
        train_loss += loss.item() * len(yb) / len(y)
    val_loss, logits = predict(model)
    print(
        f"epoch {epoch:2d} train {train_loss:.4f} val {val_loss:.4f} auc {roc_auc_score(y_val, logits):.4f}"  # noqa: E501
    )
    if val_loss < best:
        best, best_state, bad = val_loss, copy.deepcopy(model.state_dict()), 0
    else:
        bad += 1
        if bad >= PATIENCE:
            model.load_state_dict(best_state)
            break

val_loss, logits = predict(model)
print(f"submitted: logloss {val_loss:.4f} auc {roc_auc_score(y_val, logits):.4f}")
