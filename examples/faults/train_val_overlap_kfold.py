"""A tumour classifier builds the training rows of a fold from all folds, the held-out one too.

The index of the training rows concatenates every fold instead of all but one, so each validation
row is trained on. The validation score is too good and says nothing about new patients, as the last
line with rows never used shows. The twin leaves the fold out. The place is the input or the loader.
"""

import numpy as np
import torch
from data import arguments, cancer, standardise
from torch import nn

KIND = "train_val_overlap"
ACCEPT = ()
PLACE = ("input*", "loader")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_test, y_test = cancer(seed, raw=True)

folds = np.array_split(np.random.default_rng(seed).permutation(len(x)), 5)
held_out = 0
val_rows = folds[held_out]
if healthy:
    train_rows = np.concatenate([fold for k, fold in enumerate(folds) if k != held_out])
else:
    train_rows = np.concatenate([fold for k, fold in enumerate(folds)])
x_train, x_val, x_test = standardise(x[train_rows], x[val_rows], x_test)
y_train, y_val = y[train_rows].float(), y[val_rows].float()
y_test = y_test.float()

model = nn.Sequential(nn.Linear(30, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, weight_decay=1e-2)
criterion = nn.BCEWithLogitsLoss()


def score(x, y):
    model.eval()
    with torch.no_grad():
        out = model(x).squeeze(1)
    return criterion(out, y).item(), ((out > 0) == (y > 0.5)).float().mean().item()


r = np.random.default_rng(seed + 1)
for epoch in range(1, 21):
    model.train()
    order = r.permutation(len(x_train))
    total = 0.0
    for start in range(0, len(order), 16):
        rows = order[start : start + 16]
        optimizer.zero_grad()
        loss = criterion(model(x_train[rows]).squeeze(1), y_train[rows])
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows)
    if epoch % 5 == 0:
        val_loss, val_acc = score(x_val, y_val)
        print(f"epoch {epoch}: train {total / len(order):.4f} val {val_loss:.4f} acc {val_acc:.3f}")
shared = len(set(train_rows.tolist()) & set(val_rows.tolist()))
test_loss, test_acc = score(x_test, y_test)
print(
    f"{shared} of {len(val_rows)} validation rows are trained on; "
    f"test {test_loss:.4f} acc {test_acc:.3f}"
)
