"""Trains an MLP on the diabetes data with early stopping on the validation loss and takes the best
weights back.

The patience of five epochs lets the validation loss rise a little before the stop, as it has to.
"""

import copy

import torch
from data import arguments, diabetes
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = (
    "the training ends before the planned 200 epochs, after five without improvement, and old "
    "weights are loaded"
)

_, seed = arguments(__doc__)


class EarlyStopping:
    def __init__(self, patience=5):
        self.patience, self.best, self.waited, self.state = patience, float("inf"), 0, None

    def update(self, value, model):
        if value < self.best:
            self.best, self.waited = value, 0
            self.state = copy.deepcopy(model.state_dict())
        else:
            self.waited += 1
        return self.waited >= self.patience


x, y, x_val, y_val = diabetes(seed)
y, y_val = y[:, None], y_val[:, None]
loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)
criterion = nn.MSELoss()
stopping = EarlyStopping()


def evaluate():
    model.eval()
    with torch.no_grad():
        return criterion(model(x_val), y_val).item()


for epoch in range(1, 201):
    model.train()
    total = 0.0
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(xb)
    val = evaluate()
    if epoch % 5 == 0:
        print(f"epoch {epoch:3d} train {total / len(x):.4f} val {val:.4f}")
    if stopping.update(val, model):
        break

model.load_state_dict(stopping.state)
print(f"stopped after epoch {epoch}; validation loss of the best weights {evaluate():.4f}")
