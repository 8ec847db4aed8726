"""Regression (Friedman's function) with a "standard block" of Linear, BatchNorm, ReLU and
Dropout(0.5), used four times, the last time right before the output.

Four times half of everything is lost on the way; the training loss stays far above that of the
same net in eval mode, which is poor as well. The place is the dropout.
"""

import torch
from data import arguments
from sklearn.datasets import make_friedman1
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "over_regularized"
ACCEPT = ()
PLACE = ("body*", "*drop*", "")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
x, y = make_friedman1(n_samples=2000, n_features=10, noise=1.0, random_state=seed)
x = torch.tensor((x - 0.5) * 12**0.5, dtype=torch.float32)
y = torch.tensor((y - y.mean()) / y.std(), dtype=torch.float32).unsqueeze(1)
train = TensorDataset(x[:1500], y[:1500])
x_val, y_val = x[1500:], y[1500:]


def block(a, b, p):
    return nn.Sequential(nn.Linear(a, b), nn.BatchNorm1d(b), nn.ReLU(), nn.Dropout(p))


class Tabular(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.body = nn.Sequential(
            block(10, 64, p), block(64, 32, p), block(32, 32, p), block(32, 16, p)
        )
        self.out = nn.Linear(16, 1)

    def forward(self, x):
        return self.out(self.body(x))


model = Tabular(p=0.02 if healthy else 0.5)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 16)
loss_fn = nn.MSELoss()
history = []
for epoch in range(16):
    model.train()
    total = 0.0
    for xb, yb in DataLoader(train, batch_size=50, shuffle=True):
        loss = loss_fn(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(xb)
    scheduler.step()
    model.eval()
    with torch.no_grad():
        history.append((total / len(train), loss_fn(model(x_val), y_val).item()))
for epoch, (a, b) in enumerate(history):
    if epoch % 5 == 0:
        print(f"epoch {epoch:2d}: train mse {a:.3f}, val mse {b:.3f}")
