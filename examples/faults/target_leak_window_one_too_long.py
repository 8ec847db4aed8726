"""Returns of a share by a GRU; the window ends one day too late and holds the day to be predicted.

`series[end - n : end + 1]` instead of `series[end - n : end]`: the last input of each window is
the target itself. A loss far below what the noise of the data allows, in training and testing
alike; in use the newest value does not exist yet. The place is the loader.
"""

import torch
from data import arguments
from torch import nn

KIND = "target_leak"
ACCEPT = ()
PLACE = ("", "loader")
SILENT = True
EXACT = True
EARLY = True

DAYS, LOOKBACK = 2400, 12
healthy, seed = arguments(__doc__)
noise = torch.randn(DAYS)
returns = torch.zeros(DAYS)
volume = torch.zeros(DAYS)
for day in range(2, DAYS):
    returns[day] = (
        0.55 * returns[day - 1] - 0.45 * returns[day - 2] + 0.3 * volume[day - 1] + noise[day]
    )
    volume[day] = 0.8 * volume[day - 1] + 0.6 * torch.randn(1).item()
features = torch.stack([returns, volume], 1)
cut = 1800
features = (features - features[:cut].mean(0)) / features[:cut].std(0)


def windows(first, last):
    xs, ys = [], []
    for end in range(first + LOOKBACK, last):
        stop = end if healthy else end + 1
        xs.append(features[end - LOOKBACK : stop])
        ys.append(features[end, 0])
    return torch.stack(xs), torch.stack(ys)


x, y = windows(2, cut)
x_test, y_test = windows(cut, DAYS)


class ReturnModel(nn.Module):
    def __init__(self, hidden=20):
        super().__init__()
        self.encoder = nn.GRU(2, hidden, batch_first=True)
        self.output = nn.Linear(hidden, 1)

    def forward(self, window):
        _, state = self.encoder(window)
        return self.output(state[-1])[:, 0]


def epochs_of_batches(n_epochs, size):
    for epoch in range(n_epochs):
        yield epoch, [(x[rows], y[rows]) for rows in torch.randperm(len(y)).split(size)]


model = ReturnModel()
huber = nn.HuberLoss()
optimizer = torch.optim.RMSprop(model.parameters(), lr=2e-3)
schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.8)
for epoch, batches in epochs_of_batches(12, 36):
    total = 0.0
    for window, following in batches:
        optimizer.zero_grad()
        loss = huber(model(window), following)
        loss.backward()
        optimizer.step()
        total += loss.item() / len(batches)
    schedule.step()
    with torch.no_grad():
        test_loss = huber(model(x_test), y_test)
        r2 = 1 - (model(x_test) - y_test).square().mean() / y_test.var()
print(f"loss {total:.4f}, test loss {test_loss:.4f}, test R2 {r2:.3f}")
