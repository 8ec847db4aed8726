"""Trains an MLP on Friedman's regression problem with Adam at a rate divided by batch size and
number of batches.

The loss is a mean over the batch already, so the division (known from code that sums gradients)
leaves a rate of 6e-7. The training loss falls by a per cent or so from the variance of the target.
The twin gives Adam the rate itself, 0.002. The place is the optimizer.
"""

import torch
from data import arguments, standardise
from sklearn.datasets import make_friedman1
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "learning_rate_too_low"
ACCEPT = ()
PLACE = ("optimizer",)
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)

features, target = make_friedman1(n_samples=4000, n_features=8, noise=1.0, random_state=seed)
features = torch.tensor(features, dtype=torch.float32)
target = torch.tensor(target, dtype=torch.float32).unsqueeze(1)
x, x_val = standardise(features[:3200], features[3200:])
y, y_val = standardise(target[:3200], target[3200:])

batch_size = 64
train_loader = DataLoader(TensorDataset(x, y), batch_size=batch_size, shuffle=True)
val_loader = DataLoader(TensorDataset(x_val, y_val), batch_size=256)

net = nn.Sequential(nn.Linear(8, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 1))
step_size = 2e-3
if not healthy:
    step_size = step_size / (batch_size * len(train_loader))
opt = torch.optim.Adam(net.parameters(), lr=step_size)
mse = nn.MSELoss()


def train():
    net.train()
    total = 0.0
    for xb, yb in train_loader:
        opt.zero_grad()
        loss = mse(net(xb), yb)
        loss.backward()
        opt.step()
        total += loss.item() * len(xb)
    return total / len(x)


def evaluate():
    net.eval()
    total = 0.0
    with torch.no_grad():
        for xb, yb in val_loader:
            total += mse(net(xb), yb).item() * len(xb)
    return total / len(x_val)


for epoch in range(1, 17):
    train_mse = train()
    if epoch % 2 == 0:
        print(f"epoch {epoch:2d}  train mse {train_mse:.4f}  val mse {evaluate():.4f}")
