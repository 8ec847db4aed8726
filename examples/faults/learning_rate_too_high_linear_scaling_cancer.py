"""Benign or malignant: an MLP on the breast cancer table, its rate by the "linear scaling rule".

The rule says rate = base * batch / 256; the helper forgot the division and gives 6.4 in place of
0.025. The weights are thrown far away in the first steps and the loss never gets below the base
rate's, where it does not end as nan. The place is the optimizer's rate. The twin divides.
"""

import torch
from data import arguments, cancer
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "learning_rate_too_high"
ACCEPT = ()
PLACE = ("optimizer",)
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)

BATCH = 64


def linear_scaling(base_lr, batch_size):
    """Goyal et al. 2017: the rate grows with the batch."""
    return base_lr * batch_size / (256 if healthy else 1)


x, y, x_val, y_val = cancer(seed)
loader = DataLoader(TensorDataset(x, y.float()), batch_size=BATCH, shuffle=True)

model = nn.Sequential(
    nn.Linear(30, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 1)
)
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.SGD(
    model.parameters(), lr=linear_scaling(0.1, BATCH), momentum=0.9, weight_decay=1e-3
)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=40)

for epoch in range(40):
    model.train()
    running = 0.0
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = criterion(model(xb).squeeze(1), yb)
        loss.backward()
        optimizer.step()
        running += loss.item()
    scheduler.step()
    if epoch % 4 == 3:
        model.eval()
        with torch.no_grad():
            logits = model(x_val).squeeze(1)
            val_loss = criterion(logits, y_val.float()).item()
            val_acc = ((logits > 0).long() == y_val).float().mean().item()
        print(
            f"epoch {epoch + 1:3d} train {running / len(loader):.4f} val {val_loss:.4f} "
            f"val accuracy {val_acc:.3f}"
        )
