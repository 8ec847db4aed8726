"""Diabetes progression of 331 patients, learned by heart by a wide MLP over 50 epochs.

The validation loss is best in the first epochs and then rises while the training loss goes to
zero. The twin is a small net with weight decay that stops when the validation loss does not get
better. The place is the loop.
"""

import torch
from data import arguments, diabetes
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "overfit"
ACCEPT = ()
PLACE = ("", "loop")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
WIDTH, DECAY, PATIENCE = (16, 0.1, 4) if healthy else (256, 0.0, 1000)
x, y, x_val, y_val = diabetes(seed)
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
model = nn.Sequential(
    nn.Linear(10, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 1)
)
mse = nn.MSELoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=DECAY)
best, waited = float("inf"), 0
for epoch in range(50):
    model.train()
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = mse(model(xb).squeeze(-1), yb)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        train_mse = mse(model(x).squeeze(-1), y).item()
        val_mse = mse(model(x_val).squeeze(-1), y_val).item()
    best, waited = (val_mse, 0) if val_mse < best else (best, waited + 1)
    if waited == PATIENCE:
        break
print(f"epoch {epoch}: train {train_mse:.3f}, validation {val_mse:.3f} (best {best:.3f})")
