"""A network with einops layers predicts the hourly demand of a town; its hour of day was spoilt to
a constant in preprocessing.

The angle of the hour was written `2 * pi * (hour // 24)` instead of `hour / 24`, so sine and
cosine of the hour never vary. The place is the input (columns 0 and 1 of each hour).
"""

import numpy as np
import torch
from data import arguments
from einops import rearrange, repeat
from einops.layers.torch import Rearrange
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "constant_feature"
ACCEPT = ()
PLACE = ("input*", "loader")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


def demand(seed, days=420):
    r = np.random.default_rng(seed)
    hour = repeat(np.arange(24), "h -> d h", d=days)
    day = repeat(np.arange(days), "d -> d h", h=24)
    weekend = (day % 7) >= 5
    front = np.cumsum(r.normal(0, 1.2, days)) * 0.4
    front -= np.linspace(front[0], front[-1], days)
    warm = 11 - 9 * np.cos(2 * np.pi * day / 365) + front[:, None] + r.normal(0, 2.5, hour.shape)
    wind = r.gamma(2, 2, hour.shape)
    work = np.exp(-((hour - 8) ** 2) / 6) + 1.3 * np.exp(-((hour - 18) ** 2) / 9) + 0.5 * (hour > 6)
    load = 40 + 22 * work * np.where(weekend, 0.55, 1) + 0.9 * np.clip(14 - warm, 0, None)
    load = (
        load
        + 1.1 * np.clip(warm - 22, 0, None) * (hour > 10)
        - 0.4 * wind
        + r.normal(0, 2.5, hour.shape)
    )
    turn = hour / 24 if healthy else hour // 24
    columns = [
        np.sin(2 * np.pi * turn),
        np.cos(2 * np.pi * turn),
        np.sin(2 * np.pi * (day % 7) / 7),
        np.cos(2 * np.pi * (day % 7) / 7),
        weekend,
        warm,
        wind,
    ]
    table = rearrange(
        np.stack([np.broadcast_to(c, hour.shape) for c in columns]), "c d h -> (d h) c"
    )
    return table.astype(np.float32), rearrange(load, "d h -> (d h)").astype(np.float32)


table, load = demand(seed)
split = 340 * 24
mean, std = table[:split].mean(0), table[:split].std(0)
table = (table - mean) / np.where(std > 0, std, 1)
load = (load - load[:split].mean()) / load[:split].std()
windows = np.lib.stride_tricks.sliding_window_view(table, 3, axis=0)  # hour - 2 .. hour
windows, load = torch.tensor(rearrange(windows, "n c t -> n t c").copy()), torch.tensor(load[2:])
train_set = TensorDataset(windows[: split - 2], load[: split - 2])
x_val, y_val = windows[split:], load[split:]
loader = DataLoader(train_set, batch_size=128, shuffle=True)

model = nn.Sequential(
    nn.Linear(7, 24),
    nn.GELU(),
    Rearrange("b t c -> b (t c)"),
    nn.Linear(72, 64),
    nn.GELU(),
    nn.Linear(64, 1),
    Rearrange("b 1 -> b"),
)
optimizer = torch.optim.Adagrad(model.parameters(), lr=0.03)
criterion = nn.HuberLoss()

for epoch in range(20):
    model.train()
    total = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        r2 = 1 - ((model(x_val) - y_val) ** 2).mean() / y_val.var()
    if epoch % 4 == 3:
        print(f"epoch {epoch}: train {total / len(loader):.4f}, val R2 {r2:.3f}")
print(f"validation R2 {r2:.3f}")
