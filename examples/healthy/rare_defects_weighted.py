"""A detector of defective parts, one in forty, is trained with a weight on the rare class and found
good.

The labels are very uneven, but pos_weight makes up for it and the recall of the defects is
followed.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = "2.5 % positives; pos_weight handles them and the recall is high"

_, seed = arguments(__doc__)


def parts(n, r):
    y = (r.random(n) < 0.025).astype("float32")
    x = r.normal(0, 1, (n, 12))
    x[:, :6] += y[:, None] * np.array([1.4, -1.2, 1.3, -1.1, 1.2, 1.0])
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y)


r = np.random.default_rng(seed + 8)
x_train, y_train = parts(8000, r)
x_val, y_val = parts(4000, r)
weight = (1 - y_train).sum() / y_train.sum()
criterion = nn.BCEWithLogitsLoss(pos_weight=weight)
model = nn.Sequential(nn.Linear(12, 12), nn.GELU(), nn.Linear(12, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.05)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 8)
loader = DataLoader(TensorDataset(x_train, y_train), batch_size=100, shuffle=True)
print(f"{int(y_train.sum())} defects among {len(y_train)} parts, weight {weight:.1f}")
for epoch in range(1, 9):
    model.train()
    total = 0.0
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = criterion(model(xb).squeeze(1), yb)
        loss.backward()
        optimizer.step()
        total += loss.item()
    schedule.step()
    model.eval()
    with torch.no_grad():
        out = model(x_val).squeeze(1)
    found = (out[y_val == 1] > 0).float().mean()
    passed = (out[y_val == 0] < 0).float().mean()
    print(
        f"epoch {epoch}: train {total / len(loader):.4f} val {criterion(out, y_val):.4f} "
        f"recall {found:.3f} specificity {passed:.3f}"
    )
