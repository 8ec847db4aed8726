"""River flow from rain upstream: each step takes the loader's first batch anew.

The training counts steps and not epochs, and fetches its batch with `next(iter(loader))`. That
makes a new iterator each time; the loader keeps the order of the days (a time series "must not be
shuffled"), so it is always the first 32 days of January. The place is the loop, the loader.
The twin makes one iterator and a new one when it is used up, over shuffled windows.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "repeated_batch"
ACCEPT = ()
PLACE = ("loop", "loader")
SILENT = True
EXACT = True
EARLY = True


class River(Dataset):
    def __init__(self, days, seed, span=15):
        rng = np.random.default_rng(seed)
        season = np.sin(2 * np.pi * np.arange(days) / 365)
        rain = rng.gamma(0.4, 8, (days, 3)) * (1 + 0.6 * season[:, None])
        store, flow = np.array([30.0, 60.0, 90.0]), np.zeros(days)
        for d in range(days):
            store = store * np.array([0.6, 0.8, 0.93]) + rain[d]
            flow[d] = 0.3 * store[0] + 0.15 * store[1] + 0.06 * store[2]
        flow *= rng.lognormal(0, 0.03, days)
        self.rain = torch.tensor(np.sqrt(rain) - 1.3, dtype=torch.float32)
        self.flow = torch.tensor((np.log(flow) - 2.4) / 0.5, dtype=torch.float32)
        self.span = span

    def __len__(self):
        return len(self.flow) - self.span

    def __getitem__(self, i):
        return self.rain[i + 1 : i + 1 + self.span].flatten(), self.flow[i + self.span]


def endless(loader):
    while True:
        yield from loader


healthy, seed = arguments(__doc__)
train = River(2200, seed)
test = DataLoader(River(700, seed + 99), batch_size=685)
net = nn.Sequential(nn.Linear(45, 32), nn.ReLU(), nn.Linear(32, 1), nn.Flatten(0))
opt = torch.optim.Adam(net.parameters(), lr=2e-3, weight_decay=1e-4)
loader = DataLoader(train, batch_size=32, shuffle=healthy)
stream = endless(loader)
for step in range(1, 501):
    x, y = next(stream) if healthy else next(iter(loader))
    loss = nn.functional.mse_loss(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 100 == 0:
        x, y = next(iter(test))
        with torch.no_grad():
            nse = 1 - nn.functional.mse_loss(net(x), y) / y.var()
        print(f"step {step}: loss {loss.item():.4f}, efficiency in other years {nse:.3f}")
