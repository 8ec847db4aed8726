"""Tomorrow's load of a small grid is forecast with a GRU; the inputs are scaled, the load that it
must answer with is in watts (around 60,000).

The output creeps up by a learning rate's worth a step and is nowhere near after the whole training.
The place is the loss (the target) and the output layer.
"""

import math

import torch
from data import arguments
from torch import nn

KIND = "target_not_normalized"
ACCEPT = ()
PLACE = ("loss*", "out*", "readout*", "loader", "target*", "")
SILENT = True
EXACT = False
EARLY = True


def grid_load(days):
    hour = torch.arange(24 * days, dtype=torch.float32)
    day = 14_000 * torch.sin(2 * math.pi * (hour - 8) / 24) + 5_000 * torch.sin(
        4 * math.pi * hour / 24
    )
    week = 6_000 * ((hour // 24) % 7 < 5)
    weather = torch.zeros(len(hour))
    shocks = torch.randn(len(hour))
    for i in range(1, len(hour)):
        weather[i] = 0.98 * weather[i - 1] + 900 * shocks[i]
    return 60_000 + day + week + weather + 500 * torch.randn(len(hour))


class Forecaster(nn.Module):
    def __init__(self, hidden=40):
        super().__init__()
        self.rnn = nn.GRU(1, hidden, batch_first=True)
        self.readout = nn.Linear(hidden, 6)

    def forward(self, past):
        states, _ = self.rnn(past)
        return self.readout(states[:, -1])


healthy, _ = arguments(__doc__)
load = grid_load(120)
cut = 24 * 90
mean, std = load[:cut].mean(), load[:cut].std()
inputs = (load - mean) / std
wanted = inputs if healthy else load


def windows(first, last):
    starts = torch.arange(first, last - 54)
    past = inputs[starts[:, None] + torch.arange(48)]
    future = wanted[starts[:, None] + 48 + torch.arange(6)]
    return past.unsqueeze(-1), future


past, future = windows(0, cut)
past_val, future_val = windows(cut, len(load))
model = Forecaster()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for step in range(240):
    for group in optimizer.param_groups:
        group["lr"] = 5e-3 * min(1.0, (240 - step) / 120)
    rows = torch.randint(0, len(past), (64,))
    loss = nn.functional.mse_loss(model(past[rows]), future[rows])
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    if step % 40 == 39:
        with torch.no_grad():
            error = (model(past_val) - future_val).pow(2).mean().sqrt()
        watts = error * std if healthy else error
        print(f"step {step + 1}: loss {loss.item():.4g}, validation error {watts:.0f} W")
