"""Logistic MLP that looks for fraud, one payment in fifty; it calls everything honest.

Accuracy is 98 % from the first epoch and the alarm never rings. The place is the data (or the loss,
which weighs both classes alike). The twin weighs the rare class in the loss.
"""

import torch
from data import arguments, standardise
from sklearn.metrics import average_precision_score, precision_score, recall_score
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "class_imbalance"
ACCEPT = ()
PLACE = ("loader", "input*", "label*", "loss*")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)


def payments(n):
    fraud = (torch.rand(n) < 0.02).float()
    x = torch.randn(n, 10)
    x[:, :4] += 0.8 * fraud[:, None]
    x[:, 4] *= 1 + fraud
    return x, fraud


x, y = payments(12000)
x_val, y_val = payments(4000)
x, x_val = standardise(x, x_val)
weight = (y == 0).sum() / (y == 1).sum() if healthy else None

model = nn.Sequential(nn.Linear(10, 8), nn.ReLU(), nn.Linear(8, 1))
criterion = nn.BCEWithLogitsLoss(pos_weight=weight)
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, weight_decay=3e-3)
loader = DataLoader(TensorDataset(x, y), batch_size=256, shuffle=True)

for epoch in range(1, 9):
    model.train()
    total = 0
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = criterion(model(xb).squeeze(-1), yb)
        loss.backward()
        optimizer.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        score = model(x_val).squeeze(-1)
        val_loss = criterion(score, y_val).item()
    said = (score > 0).float()
    accuracy = (said == y_val).float().mean().item()
    recall = recall_score(y_val, said, zero_division=0)
    precision = precision_score(y_val, said, zero_division=0)
    ap = average_precision_score(y_val, score)
    print(
        f"epoch {epoch}: loss {total / len(loader):.3f}/{val_loss:.3f} accuracy {accuracy:.3f} "
        f"recall {recall:.2f} precision {precision:.2f} AP {ap:.2f}"
    )
