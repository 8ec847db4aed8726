"""Heat demand of houses: in a few hours the meter was off and says 99.9, and goes in as a target.

The exporter writes 99.9 for "no value". Only six rows of four thousand have it, so that means and
histograms look right, yet each time such a row comes by the loss leaps to many hundred times its
size and one step undoes the work of many. The place is the input.
The twin leaves these rows out.
"""

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "loss_spike"
ACCEPT = ("target_not_normalized", "label_noise")
PLACE = ("input*", "loader", "loop")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
rng = np.random.default_rng(800 + seed)

outside = rng.normal(6, 7, 4600)
wind = rng.gamma(2, 2, 4600)
hour = rng.integers(0, 24, 4600)
area = rng.uniform(60, 240, 4600)
age = rng.uniform(0, 80, 4600)
night = 1 - 0.3 * ((hour < 6) | (hour > 21))
kw = area * (0.0012 + 0.00003 * age) * np.clip(19 - outside + 0.3 * wind, 0, None) * night
kw = kw + rng.normal(0, 0.25, 4600).clip(-0.5, 0.5)
kw[rng.choice(np.arange(400, 4000), 6, replace=False)] = 99.9

cols = [outside, wind, np.sin(hour / 3.82), np.cos(hour / 3.82), night, area, age]
x = np.stack(cols, 1)
x = torch.tensor((x - x.mean(0)) / x.std(0), dtype=torch.float32)
y = torch.tensor((kw - 5.0) / 4.0, dtype=torch.float32)

train_rows = torch.arange(4000)
if healthy:
    train_rows = train_rows[torch.tensor(kw[:4000] < 90)]
x_val, y_val = x[4000:], y[4000:]

net = nn.Sequential(nn.Linear(7, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
opt = torch.optim.Adam(net.parameters(), lr=1.5e-3)

step = 0
for epoch in range(8):
    order = train_rows[torch.randperm(len(train_rows))]
    for idx in order.split(50):
        pred = net(x[idx]).squeeze(1)
        loss = torch.mean((pred - y[idx]) ** 2)
        opt.zero_grad()
        loss.backward()
        opt.step()
        step += 1
        if step % 80 == 0:
            with torch.no_grad():
                rmse = 4 * torch.sqrt(torch.mean((net(x_val).squeeze(1) - y_val) ** 2))
            print(f"step {step} loss {loss.item():.4f} validation rmse {rmse:.3f} kW")
