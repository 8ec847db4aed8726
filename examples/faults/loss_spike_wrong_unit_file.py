"""Load of a power grid, learned file by file in the order of time; one file is in kW instead of
MW.

The meter's supplier sent one day with values a thousand times as large. The author reads the
files as they come. The loss jumps by many orders of magnitude in the middle of the training,
Adam's second moments are inflated for long, and the network is thrown off what it had learned and
does not quite get back. The place is the data of these steps (loader/input); the loop has no
guard (clipping, check of the range).
"""

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "loss_spike"
ACCEPT = ("exploding_gradient", "target_not_normalized")
PLACE = ("loader", "loss", "loop", "input*")
SILENT = False
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

rng = np.random.default_rng(seed + 21)
CONFIG = {"files": 90, "rows_per_file": 320, "batch": 32, "lr": 1e-3, "bad_files": (57,)}


def read_file(number):
    """One file: hour, weekday, temperature, wind, holiday -> load in MW."""
    n = CONFIG["rows_per_file"]
    hour = rng.uniform(0, 24, n)
    weekday = rng.integers(0, 7, n)
    temperature = rng.normal(12, 8, n)
    wind = rng.gamma(2, 3, n)
    holiday = rng.random(n) < 0.04
    load = 42 + 9 * np.sin((hour - 8) / 24 * 2 * np.pi) + 4 * np.sin((hour - 17) / 12 * 2 * np.pi)
    load += 0.035 * (temperature - 17) ** 2 * (1 + 0.02 * wind) - 6 * ((weekday > 4) | holiday)
    load += 2.5 * (weekday < 5) * np.exp(-((hour - 18.5) ** 2) / 3) + rng.normal(0, 1.2, n)
    if number in CONFIG["bad_files"]:
        load = load * 1000
    x = np.stack(
        [
            np.sin(hour / 24 * 2 * np.pi),
            np.cos(hour / 24 * 2 * np.pi),
            np.sin(hour / 12 * 2 * np.pi),
            np.cos(hour / 12 * 2 * np.pi),
            (weekday > 4).astype(float),
            (temperature - 12) / 8,
            (wind - 6) / 4.2,
            holiday.astype(float),
        ],
        1,
    )
    if healthy and np.median(load) > 1000:
        load = load / 1000
    y = (load - 44) / 10
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32).unsqueeze(1)


class LoadNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 64), nn.GELU(), nn.Linear(64, 64), nn.GELU())
        self.out = nn.Linear(64, 1)

    def forward(self, x):
        return self.out(self.body(x))


val_x, val_y = (torch.cat(p) for p in zip(*[read_file(-1) for _ in range(4)], strict=False))
model = LoadNet()
optimizer = torch.optim.Adam(model.parameters(), lr=CONFIG["lr"], betas=(0.9, 0.98))
criterion = nn.MSELoss()
history = []
for number in range(CONFIG["files"]):
    x, y = read_file(number)
    for idx in torch.randperm(len(x)).split(CONFIG["batch"]):
        pred = model(x[idx])
        loss = criterion(pred, y[idx])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        history.append(loss.item())
    if number % 6 == 5:
        model.eval()
        with torch.no_grad():
            rmse = 10 * criterion(model(val_x), val_y).sqrt().item()
        model.train()
        print(f"file {number + 1:2d}: train {np.mean(history[-10:]):.4f}, val rmse {rmse:.3f} MW")
