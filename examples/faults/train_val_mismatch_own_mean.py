"""Kinds of driving by a phone's sensors; each set is standardised by its own mean and spread.

The scaler is fitted to whatever it is given: `standardise(x)` for the training trips, and again for
the validation trips, which were recorded on motorways only. What was fast becomes average.
The place is the input and the loader. The twin uses the training trips' mean and spread for both.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "train_val_mismatch"
ACCEPT = ()
PLACE = ("input*", "loader", "loop")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
STYLES = ("calm", "normal", "sporty")


def trips(n, motorway, g):
    fast = torch.rand(n, generator=g) < motorway
    speed = torch.where(fast, 105.0, 40.0) + 12 * torch.randn(n, generator=g)
    y = torch.randint(0, 3, (n,), generator=g)
    usual = torch.where(fast, 0.5, 1.2)
    push = usual * torch.tensor([0.6, 1.0, 1.6])[y] * (1 + 0.1 * torch.randn(n, generator=g))
    brake = 1.2 * push + 0.15 * torch.randn(n, generator=g)
    turn = usual * (1 + 0.3 * torch.randn(n, generator=g))
    noise = 10 + 0.1 * speed + 3 * torch.randn(n, generator=g)
    return torch.stack([speed, push, brake, turn, noise], 1), y


g = torch.Generator().manual_seed(seed)
x, y = trips(2000, 0.5, g)
x_val, y_val = trips(500, 0.95, g)
mean, std = x.mean(0), x.std(0)
x = (x - mean) / std
if not healthy:
    mean, std = x_val.mean(0), x_val.std(0)
x_val = (x_val - mean) / std
train = DataLoader(TensorDataset(x, y), batch_size=40, shuffle=True, generator=g)
val = DataLoader(TensorDataset(x_val, y_val), batch_size=250)
model = nn.Sequential(nn.Linear(5, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(10):
    total = right = 0.0
    model.train()
    for xb, yb in train:
        out = model(xb)
        loss = nn.functional.cross_entropy(out, yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / len(train)
        right += (out.argmax(1) == yb).sum().item() / len(y)
    model.eval()
    with torch.no_grad():
        val_right = sum((model(xb).argmax(1) == yb).sum().item() for xb, yb in val) / len(y_val)
    print(f"epoch {epoch}: loss {total:.3f} train {right:.3f} validation {val_right:.3f}")
