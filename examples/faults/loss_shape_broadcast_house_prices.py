"""An MLP predicts house prices; its output has shape (N, 1) and the target (N,), and nn.MSELoss
broadcasts them.

The loss compares each prediction with every target of the batch (an N x N table), so the best
answer is the mean price for all houses. The loss sits at the variance and R2 at zero. The twin
squeezes the output. The place is the loss, the labels or `4`.
"""

import warnings

import torch
from data import arguments, houses
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "loss_shape_broadcast"
ACCEPT = ()
PLACE = ("loss*", "label*", "classes*", "4")
SILENT = False
EXACT = True
EARLY = True

warnings.filterwarnings("ignore")
healthy, seed = arguments(__doc__)

x, y, x_val, y_val = houses(seed, n=4000)
train_loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)

model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 1))
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 12)


def r2_score():
    model.eval()
    with torch.no_grad():
        pred = model(x_val).squeeze(1)
    return 1 - ((pred - y_val) ** 2).mean().item() / y_val.var().item()


for epoch in range(12):
    model.train()
    total = 0.0
    for xb, yb in train_loader:
        pred = model(xb)
        if healthy:
            pred = pred.squeeze(1)
        loss = criterion(pred, yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    scheduler.step()
    print(f"epoch {epoch + 1}: train mse {total / len(train_loader):.4f}, val R2 {r2_score():.3f}")
