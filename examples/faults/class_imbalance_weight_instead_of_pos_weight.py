"""Card fraud: 1.5 % of payments are fraud, trained as they come, and accuracy is 98 %.

`class_weights` computes balanced weights and the criterion takes them as `weight=`; for
BCEWithLogitsLoss that is a weight per ELEMENT, of one number here (that of class 0, the author
took "the" weight), so that all rows get the same half. No fraud is found. The place is the loss.
The twin passes the ratio as `pos_weight`.
"""

import numpy as np
import torch
from data import arguments, standardise
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "class_imbalance"
ACCEPT = ()
PLACE = ("loss", "labels", "data")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)


def payments(n, rng, share=0.015):
    fraud = rng.random(n) < share
    amount = rng.lognormal(3.2 + 0.9 * fraud, 0.9)
    hour = rng.normal(14 - 2.5 * fraud, 4)
    distance = rng.lognormal(1.5 + 0.9 * fraud, 1.0)
    age = rng.normal(40 - 4 * fraud, 12)
    recent = rng.poisson(2 + 1.5 * fraud)
    x = np.stack([np.log(amount), hour, np.log(distance), age, recent], 1)
    return torch.tensor(x, dtype=torch.float32), torch.tensor(fraud, dtype=torch.float32)


def class_weights(y):
    """Those of sklearn's class_weight="balanced"."""
    positive = y.mean()
    return 0.5 / (1 - positive), 0.5 / positive


rng = np.random.default_rng(seed)
x, y = payments(6000, rng)
x_val, y_val = payments(3000, rng)
x, x_val = standardise(x, x_val)
train = DataLoader(TensorDataset(x, y), batch_size=200, shuffle=True)

negative, positive = class_weights(y)
if healthy:
    criterion = nn.BCEWithLogitsLoss(pos_weight=positive / negative)
else:
    criterion = nn.BCEWithLogitsLoss(weight=negative)
model = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, weight_decay=1e-4)
for epoch in range(12):
    model.train()
    total = 0.0
    for xb, yb in train:
        optimizer.zero_grad()
        loss = criterion(model(xb).squeeze(1), yb)
        loss.backward()
        optimizer.step()
        total += loss.item() / len(train)
    model.eval()
    with torch.no_grad():
        logits = model(x_val).squeeze(1)
    found = logits > 0
    accuracy = (found == y_val.bool()).float().mean()
    recall = found[y_val == 1].float().mean()
    balanced = (recall + (~found)[y_val == 0].float().mean()) / 2
    print(
        f"epoch {epoch:2d} loss {total:.3f} val {criterion(logits, y_val):.3f} "
        f"accuracy {accuracy:.3f} recall {recall:.3f} balanced {balanced:.3f}"
    )
