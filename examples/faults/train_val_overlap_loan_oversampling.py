"""A loan default model, whose rare class is oversampled before the split, not after it.

The copies of a default lie on both sides: the validation part contains rows of the training. The
measure says far more than customers who were never seen do (printed at the end). The place is the
data (the split, the validation loader).
"""

import copy

import numpy as np
import torch
from data import arguments, standardise
from sklearn.metrics import roc_auc_score
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "train_val_overlap"
ACCEPT = ()
PLACE = ("loader", "loop", "input*")
SILENT = True
EXACT = True
EARLY = False
healthy, seed = arguments(__doc__)


def loans(n, r):
    """Fourteen columns of a customer; about one in six does not pay."""
    x = r.normal(size=(n, 14))
    x[:, 0] = np.exp(0.5 * x[:, 0])
    risk = 0.8 * x[:, 1] - 0.7 * x[:, 2] + 0.6 * x[:, 3] * x[:, 4] - 0.4 * x[:, 0] - 1.6
    return x.astype("float32"), (r.random(n) < 1 / (1 + np.exp(-risk))).astype("float32")


def oversample(x, y, r):
    """As many defaults as others, by drawing copies."""
    rare = np.flatnonzero(y == 1)
    more = r.choice(rare, size=int((y == 0).sum() - len(rare)))
    rows = r.permutation(np.concatenate([np.arange(len(y)), more]))
    return x[rows], y[rows]


def split(x, y, r):
    rows = r.permutation(len(y))
    cut = int(0.7 * len(y))
    return x[rows[:cut]], y[rows[:cut]], x[rows[cut:]], y[rows[cut:]]


r = np.random.default_rng(seed)
x, y = loans(2500, r)
x_new, y_new = loans(3000, r)
if healthy:
    x, y, x_val, y_val = split(x, y, r)
    x, y = oversample(x, y, r)
else:
    x, y, x_val, y_val = split(*oversample(x, y, r), r)
x, y, x_val, y_val, x_new, y_new = map(torch.from_numpy, (x, y, x_val, y_val, x_new, y_new))
x, x_val, x_new = standardise(x, x_val, x_new)
train = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
val = DataLoader(TensorDataset(x_val, y_val), batch_size=128)

model = nn.Sequential(nn.Linear(14, 96), nn.ReLU(), nn.Linear(96, 48), nn.ReLU(), nn.Linear(48, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4, weight_decay=1e-2)
criterion = nn.BCEWithLogitsLoss()
best = (0.0, 0, model.state_dict())
for epoch in range(25):
    model.train()
    for a, b in train:
        loss = criterion(model(a).squeeze(1), b)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        scores = torch.cat([model(a).squeeze(1) for a, _ in val])
        error = criterion(scores, y_val).item()
    auc = roc_auc_score(y_val, scores)
    if auc > best[0]:
        best = (auc, epoch, copy.deepcopy(model.state_dict()))
    print(f"epoch {epoch} train {loss.item():.4f} val loss {error:.4f} val AUC {auc:.3f}")
    if epoch - best[1] == 2:
        break
model.load_state_dict(best[2])
with torch.no_grad():
    fresh = roc_auc_score(y_new, model(x_new).squeeze(1))
print(f"best val AUC {best[0]:.3f}, AUC of new customers {fresh:.3f}")
