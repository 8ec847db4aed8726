"""Prices of houses, MLP with dropout: the model's own `train` method swallows the mode.

The module overrides `train()` to keep an input layer's noise under its own flag, and forgets that
`eval()` is nothing but `train(False)`: it calls `super().train()` without passing the mode on, so
model.eval() switches to training. Validation is done under dropout. The place is the loop (or the
dropout layers). The twin hands the mode on.
"""

import torch
from data import arguments, houses
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "train_mode_in_validation"
ACCEPT = ()
PLACE = ("loop", "drop", "drop1", "drop2")
SILENT = True
EXACT = True
EARLY = False

healthy, seed = arguments(__doc__)


class PriceNet(nn.Module):
    def __init__(self, features, width=40, p=0.4):
        super().__init__()
        self.lin1 = nn.Linear(features, width)
        self.drop1 = nn.Dropout(p)
        self.lin2 = nn.Linear(width, width)
        self.drop2 = nn.Dropout(p)
        self.out = nn.Linear(width, 1)
        self.jitter = 0.0

    def train(self, mode=True):
        self.jitter = 0.05 if mode else 0.0
        if healthy:
            return super().train(mode)
        return super().train()

    def forward(self, x):
        if self.jitter:
            x = x + self.jitter * torch.randn_like(x)
        h = self.drop1(self.lin1(x).relu())
        h = self.drop2(self.lin2(h).relu())
        return self.out(h).squeeze(-1)


def evaluate(model, loader):
    model.eval()
    squares, count = 0.0, 0
    with torch.no_grad():
        for x, y in loader:
            squares += (model(x) - y).pow(2).sum().item()
            count += len(y)
    return squares / count


x, y, x_val, y_val = houses(seed, n=1600)
train = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)
val = DataLoader(TensorDataset(x_val, y_val), batch_size=200)
model = PriceNet(x.shape[1])
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-3)
for epoch in range(20):
    model.train()
    total = 0.0
    for xb, yb in train:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(xb), yb)
        loss.backward()
        optimizer.step()
        total += loss.item() / len(train)
    error = evaluate(model, val)
    print(f"epoch {epoch:2d} loss {total:.3f} val mse {error:.3f} R2 {1 - error / y_val.var():.3f}")
