"""A model of ozone by weather and measuring station; almost every station gets the row of the
unknown one.

The station codes of the table are written in capitals, the dictionary of the stations in small
letters: `get(code, 0)` then gives 0 for every station but a few. The embedding's rows stay
unused. The place is the ids/the embedding.
"""

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "embedding_rows_unused"
ACCEPT = ()
PLACE = ("station", "station*", "input*")
SILENT = True
EXACT = True
EARLY = False
healthy, seed = arguments(__doc__)

STATIONS = 300
r = np.random.default_rng(90 + seed)
codes = [
    f"{'ABCDEFGH'[i % 8]}{'KLMNP'[i % 5]}{i:03d}" if i % 60 else f"{i:03d}" for i in range(STATIONS)
]
number = {code.lower(): i + 1 for i, code in enumerate(codes)}

level = r.normal(0, 1.0, STATIONS)
slope = r.normal(1.0, 0.4, STATIONS)
n = 15000
station = r.integers(0, STATIONS, n)
weather = r.normal(0, 1, (n, 5))  # temperature, wind, radiation, humidity, pressure
ozone = (
    level[station]
    + slope[station] * np.tanh(weather[:, 0])
    + 0.5 * weather[:, 2] * (weather[:, 1] < 0)
    - 0.3 * weather[:, 3]
    + r.normal(0, 0.35, n)
)
rows = [codes[s] for s in station]
ids = torch.tensor([number.get(c.lower() if healthy else c, 0) for c in rows])
x = torch.tensor(weather, dtype=torch.float32)
y = torch.tensor((ozone - ozone.mean()) / ozone.std(), dtype=torch.float32)
train, val = slice(0, 12000), slice(12000, n)


class Ozone(nn.Module):
    def __init__(self):
        super().__init__()
        self.station = nn.Embedding(STATIONS + 1, 8)
        self.net = nn.Sequential(
            nn.Linear(13, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1)
        )

    def forward(self, ids, x):
        return self.net(torch.cat([self.station(ids), x], 1)).squeeze(1)


model = Ozone()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
data = torch.utils.data.TensorDataset(ids[train], x[train], y[train])
loader = torch.utils.data.DataLoader(data, batch_size=128, shuffle=True)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.75)
for epoch in range(8):
    model.train()
    for i, xb, yb in loader:
        optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.mse_loss(model(i, xb), yb)
        loss.backward()
        optimizer.step()
    scheduler.step()
    model.eval()
    with torch.no_grad():
        train_error = nn.functional.mse_loss(model(ids[train], x[train]), y[train]).item()
        error = nn.functional.mse_loss(model(ids[val], x[val]), y[val]).item()
    print(f"epoch {epoch} train mse {train_error:.3f} val mse {error:.3f}")
