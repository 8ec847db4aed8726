"""Taste of cheese from molecules: early stopping ends the training at the first small setback.

The patience is 1 and a gain below 0.02 doesn't count. The validation set is small and its
loss goes up and down, so the training ends after a few epochs, long before it is good.
The place is the loop (or the validation). The twin waits for fifteen epochs without any gain.
"""

import copy

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "stopped_too_early"
ACCEPT = ()
PLACE = ("loop",)
SILENT = True
EXACT = False
EARLY = False


class EarlyStopping:
    def __init__(self, patience, min_delta):
        self.patience, self.min_delta = patience, min_delta
        self.best, self.waited, self.state = float("inf"), 0, None

    def __call__(self, loss, model):
        if loss < self.best - self.min_delta:
            self.best, self.waited = loss, 0
            self.state = copy.deepcopy(model.state_dict())
        else:
            self.waited += 1
        return self.waited >= self.patience


healthy, seed = arguments(__doc__)
stopper = EarlyStopping(15, 0.0) if healthy else EarlyStopping(1, 0.02)


def cheeses(n):
    molecules = torch.randn(n, 12)
    taste = torch.sin(1.5 * molecules[:, 0]) + molecules[:, 1] * molecules[:, 2]
    taste = taste + 0.5 * molecules[:, 3].abs() + 0.1 * torch.randn(n)
    return molecules, (taste - 0.4) / 1.25


x, y = cheeses(2500)
x_val, y_val = cheeses(100)
x_test, y_test = cheeses(1000)
loader = DataLoader(TensorDataset(x, y), batch_size=128, shuffle=True)
model = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-5)
mse = nn.MSELoss()

for epoch in range(60):
    total = 0.0
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = mse(model(xb).squeeze(1), yb)
        loss.backward()
        optimizer.step()
        total += loss.item() / len(loader)
    with torch.no_grad():
        val = mse(model(x_val).squeeze(1), y_val).item()
    if epoch < 5 or epoch % 10 == 9:
        print(f"epoch {epoch + 1} train {total:.4f} val {val:.4f}")
    if stopper(val, model):
        print(f"stopped after epoch {epoch + 1}")
        break

model.load_state_dict(stopper.state)
with torch.no_grad():
    print(f"test mse {mse(model(x_test).squeeze(1), y_test).item():.4f}")
