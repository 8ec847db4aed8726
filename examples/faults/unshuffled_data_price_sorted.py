"""Estimates prices of used cars; the table is sorted by price and is read from top to bottom.

The export came with ORDER BY price, and the loader of the training part does not shuffle. Each
epoch goes from the cheap cars to the expensive ones; the net follows the price of the last
batches, and ends each epoch with estimates that are too high.
The place is the loader.
The twin shuffles.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "unshuffled_data"
ACCEPT = ()
PLACE = ("loader", "input*")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


def cars(n):
    age = 15 * torch.rand(n)
    km = age * (8 + 8 * torch.rand(n))
    power = 50 + 150 * torch.rand(n)
    seats = torch.randint(2, 8, (n,)).float()
    log_price = 9.6 - 0.11 * age - 0.003 * km + 0.006 * power + 0.15 * torch.randn(n)
    return torch.stack([age, km, power, seats], 1), log_price


x, y = cars(2000)
mean, std = x.mean(0), x.std(0)
x, y = (x - mean) / std, (y - y.mean()) / y.std()
x_val, y_val = x[1600:], y[1600:]
by_price = y[:1600].argsort()
train_set = TensorDataset(x[:1600][by_price], y[:1600][by_price])
loader = DataLoader(train_set, batch_size=32, shuffle=healthy)

model = nn.Sequential(nn.Linear(4, 48), nn.Tanh(), nn.Linear(48, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
loss_fn = nn.MSELoss()

for epoch in range(12):
    model.train()
    total = 0.0
    for features, price in loader:
        optimizer.zero_grad()
        loss = loss_fn(model(features)[:, 0], price)
        loss.backward()
        optimizer.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        off = model(x_val)[:, 0] - y_val
    print(
        f"epoch {epoch}: train {total / len(loader):.3f} val {off.pow(2).mean():.3f} "
        f"mean error {off.mean():+.3f}"
    )
