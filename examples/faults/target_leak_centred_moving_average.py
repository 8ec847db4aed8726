"""A forecast of the next value of a noisy series from smoothed past values.

Fault: the smoothing is centred (`padding="same"`), so that the last inputs have the values to come
in them, the target among them; in use only the past is at hand. The place is the input. Loss and
validation loss are better than the noise allows.
"""

import numpy as np
import torch
from data import arguments, batches
from torch import nn
from torch.nn import functional as F

KIND = "target_leak"
ACCEPT = ("future_leak",)
PLACE = ("input*", "loader")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
r = np.random.default_rng(seed)
level = np.zeros(4000)
for t in range(2, 4000):
    level[t] = 1.5 * level[t - 1] - 0.7 * level[t - 2] + r.normal()
series = torch.tensor(level / level.std(), dtype=torch.float32)
WIDTH, PAST = 5, 16


def trailing(s):
    return F.avg_pool1d(F.pad(s[None, None], (WIDTH - 1, 0)), WIDTH, 1)[0, 0]


def centred(s):
    return F.avg_pool1d(s[None, None], WIDTH, 1, padding=WIDTH // 2)[0, 0]


def windows(smooth):
    both = torch.stack([series, smooth], 1)
    rows = torch.stack([both[i : i + PAST].flatten() for i in range(len(series) - PAST)])
    return rows, series[PAST:]


x, y = windows(trailing(series) if healthy else centred(series))
x_live, _ = windows(trailing(series))  # what there is when the forecast is made
net = nn.Sequential(nn.Linear(2 * PAST, 48), nn.ReLU(), nn.Linear(48, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
for step, (xb, yb) in enumerate(batches(x[:3000], y[:3000], size=64, steps=400, seed=seed), 1):
    loss = F.mse_loss(net(xb).squeeze(1), yb)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 80 == 0:
        with torch.no_grad():
            val = F.mse_loss(net(x[3000:]).squeeze(1), y[3000:]).item()
        print(f"step {step}: loss {loss.item():.4f}, validation loss {val:.4f}")
with torch.no_grad():
    live = F.mse_loss(net(x_live[3000:]).squeeze(1), y[3000:]).item()
print(f"loss {loss.item():.4f} | validation loss {val:.4f} live {live:.4f}")
