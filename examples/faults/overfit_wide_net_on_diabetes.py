"""Trains a wide MLP on the 331 patients of the diabetes data for 35 epochs, long past its best
validation loss.

The validation loss is lowest within the first epochs and then rises far above that while the
training loss falls towards zero: the net learns the patients by heart. The twin stops when the
validation loss has not improved for some epochs and takes the best weights back. The place is the
loop.
"""

import copy

import torch
from data import arguments, diabetes
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "overfit"
ACCEPT = ()
PLACE = ("loop",)
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
PATIENCE = 3 if healthy else None

x, y, x_val, y_val = diabetes(seed)
loader = DataLoader(TensorDataset(x, y.unsqueeze(1)), batch_size=8, shuffle=True)
y_val = y_val.unsqueeze(1)

model = nn.Sequential(
    nn.Linear(10, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 1)
)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-4)
criterion = nn.MSELoss()
best, best_epoch, best_state = float("inf"), 0, None


def evaluate():
    model.eval()
    with torch.no_grad():
        return criterion(model(x_val), y_val).item()


for epoch in range(1, 36):
    model.train()
    total = 0.0
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        optimizer.step()
        total += loss.item()
    val = evaluate()
    if epoch % 2 == 0:
        print(f"epoch {epoch:3d}: train {total / len(loader):.4f} val {val:.4f}")
    if val < best:
        best, best_epoch, best_state = val, epoch, copy.deepcopy(model.state_dict())
    if PATIENCE is not None and epoch - best_epoch >= PATIENCE:
        model.load_state_dict(best_state)
        break

print(f"last epoch {epoch}, val now {evaluate():.4f}; best epoch {best_epoch}, val {best:.4f}")
