"""Forecast of tomorrow's hourly grid load from the last days; the losses of the small batches are
added up instead of averaged.

The analyst's laptop could hold only small batches, so the gradients of sixteen of them are gathered
before a step, to match a batch size and learning rate that a colleague had tuned on a server. The
division by the number of small batches was left out when the loop was rewritten, so every step is
sixteen times as long as intended.
The place is the loss that goes into the backward pass.
The twin divides each loss by the number of small batches.
"""

import math

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "accumulation_not_averaged"
ACCEPT = ("learning_rate_too_high",)
PLACE = ("loss*", "loop", "optimizer")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)

DAYS, LAG, AHEAD = 420, 72, 24
MICRO, ACCUMULATE = 8, 16


def make_load():
    hours = torch.arange(DAYS * 24, dtype=torch.float32)
    daily = torch.sin(2 * math.pi * (hours - 8) / 24) + 0.4 * torch.sin(4 * math.pi * hours / 24)
    weekend = ((hours // 24) % 7 >= 5).float()
    season = torch.cos(2 * math.pi * hours / (24 * 365))
    noise = torch.zeros_like(hours)
    shocks = 0.12 * torch.randn(len(hours))
    for t in range(1, len(hours)):
        noise[t] = 0.9 * noise[t - 1] + shocks[t]
    return 52 + 9 * daily * (1 - 0.4 * weekend) - 6 * weekend + 7 * season + 4 * noise


load = make_load()
train_end = int(len(load) * 0.75)
mean, std = load[:train_end].mean(), load[:train_end].std()
scaled = (load - mean) / std


def windows(series, offset):
    pieces = series.unfold(0, LAG + AHEAD, 3)
    hour = (offset + torch.arange(len(pieces)) * 3 + LAG) % 168
    clock = torch.stack(
        [
            torch.sin(2 * math.pi * hour / 24),
            torch.cos(2 * math.pi * hour / 24),
            torch.sin(2 * math.pi * hour / 168),
            torch.cos(2 * math.pi * hour / 168),
        ],
        1,
    )
    return torch.cat([pieces[:, :LAG], clock], 1), pieces[:, LAG:]


x, y = windows(scaled[:train_end], 0)
x_val, y_val = windows(scaled[train_end:], train_end)
loader = DataLoader(TensorDataset(x, y), batch_size=MICRO, shuffle=True, drop_last=True)

model = nn.Sequential(
    nn.Linear(LAG + 4, 96),
    nn.ReLU(),
    nn.Linear(96, 64),
    nn.ReLU(),
    nn.Linear(64, AHEAD),
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.08, momentum=0.9)

for epoch in range(12):
    model.train()
    total = 0.0
    optimizer.zero_grad()
    for number, (xb, yb) in enumerate(loader, 1):
        loss = nn.functional.mse_loss(model(xb), yb)
        total += loss.item()
        if healthy:
            loss = loss / ACCUMULATE
        loss.backward()
        if number % ACCUMULATE == 0:
            optimizer.step()
            optimizer.zero_grad()
    if epoch % 3 == 2:
        model.eval()
        with torch.no_grad():
            error = (model(x_val) - y_val).abs().mean() * std
        print(f"epoch {epoch + 1:2d}  loss {total / len(loader):.4f}  val MAE {error:.3f} GW")
