"""The function that draws a batch makes its own random generator from the run's seed, "to be
reproducible" - each time it is called.

So every step trains on the same 32 rows, whose loss goes to nothing while all other rows get worse.
The place is the loader: the draw.
"""

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "repeated_batch"
ACCEPT = ("overfit",)
PLACE = ("loader", "loop", "input*", "")
SILENT = True
EXACT = True
EARLY = True


class Tides:
    """Water level of a harbour from moon, sun, wind and pressure."""

    def __init__(self, seed, n=1500):
        r = np.random.default_rng(seed + 77)
        moon, sun, wind_way = (r.uniform(0, 2 * np.pi, n) for _ in range(3))
        wind = r.gamma(2.0, 1.0, n)
        pressure = r.normal(0, 1, n)
        level = (
            np.cos(moon) + 0.4 * np.cos(sun) + 0.25 * wind * np.cos(wind_way - 1) - 0.3 * pressure
        )
        level += r.normal(0, 0.08, n)
        parts = [np.sin(moon), np.cos(moon), np.sin(sun), np.cos(sun)]
        parts += [wind * np.sin(wind_way) / 2, wind * np.cos(wind_way) / 2, pressure]
        self.x = torch.from_numpy(np.stack(parts, 1)).float()
        self.y = torch.from_numpy((level - level.mean()) / level.std()).float()
        self.train = np.arange(1200)
        self.test = np.arange(1200, n)
        self.seed = seed
        self.rng = np.random.default_rng(seed)

    def draw(self, size, keep_generator):
        rng = self.rng if keep_generator else np.random.default_rng(self.seed)
        rows = rng.choice(self.train, size, replace=False)
        return self.x[rows], self.y[rows]


healthy, seed = arguments(__doc__)
tides = Tides(seed)
model = nn.Sequential(nn.Linear(7, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for step in range(1, 401):
    x, y = tides.draw(32, keep_generator=healthy)
    loss = (model(x).squeeze(-1) - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step == 250:
        optimizer.param_groups[0]["lr"] = 5e-4
    if step % 50 == 0:
        with torch.no_grad():
            test = (model(tides.x[tides.test]).squeeze(-1) - tides.y[tides.test]).square().mean()
        print(f"{step:4d}  train {loss.item():.4f}  test {test.item():.4f}")
