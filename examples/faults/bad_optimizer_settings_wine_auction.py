"""Hammer prices of wine lots with RMSprop, whose alpha got the value of a momentum's complement.

`alpha=0.01` was meant as "one per cent new", which is how the colleague's own optimizer reads it.
In PyTorch alpha is what is kept: the mean square is that of the last gradient alone, and every
weight moves by the full rate in each step, to one side or the other.
The place is the optimizer. The twin has 0.99.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "bad_optimizer_settings"
ACCEPT = ("learning_rate_too_high",)
PLACE = ("optimizer",)
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
REGIONS = 30


def lots(n):
    r = np.random.default_rng(seed)
    region, age = r.integers(0, REGIONS, n), r.uniform(1, 40, n)
    score, bottles = r.normal(91, 3, n), r.choice([1, 3, 6, 12], n)
    fame = np.random.default_rng(1).normal(0, 0.7, REGIONS)
    price = fame[region] + 0.12 * (score - 91) + 0.3 * np.log(age) + 0.5 * np.log(bottles)
    price = price + 0.02 * (score - 91) * fame[region] + r.normal(0, 0.2, n)
    x = np.stack([(age - 20) / 11, (score - 91) / 3, np.log(bottles) - 1.3], 1)
    y = (price - price.mean()) / price.std()
    return torch.tensor(region), torch.tensor(x).float(), torch.tensor(y).float()


class Lots(nn.Module):
    def __init__(self):
        super().__init__()
        self.region = nn.Embedding(REGIONS, 6)
        self.body = nn.Sequential(nn.Linear(9, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
        self.price = nn.Linear(64, 1)

    def forward(self, region, x):
        return self.price(self.body(torch.cat([self.region(region), x], 1))).squeeze(1)


data = TensorDataset(*lots(3000))
train, val = torch.utils.data.random_split(data, [2400, 600])
model = Lots()
optimizer = torch.optim.RMSprop(model.parameters(), lr=4e-3, alpha=0.99 if healthy else 0.01)
for epoch in range(12):
    total = 0.0
    for region, x, y in DataLoader(train, batch_size=32, shuffle=True):
        loss = nn.functional.mse_loss(model(region, x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(y)
    with torch.no_grad():
        region, x, y = next(iter(DataLoader(val, batch_size=600)))
        error = nn.functional.mse_loss(model(region, x), y).item()
    if epoch % 3 == 2:
        print(f"epoch {epoch + 1}: {total / len(train):.4f}, validation {error:.4f}")
