"""Tomorrow's temperature, standardised: the network's last layer is followed by a sigmoid.

The network was taken from a project that foretold the chance of rain. The sigmoid at its end gives
0 to 1, and half of the standardised temperatures are below 0, some above 1.
The place is the output. The twin ends in the linear layer.
"""

import math

import torch
from data import arguments
from torch import nn

KIND = "output_activation_range"
ACCEPT = ("saturated_activation", "target_not_normalized")
PLACE = ("output*", "head", "head.0", "head.1", "loss*")
SILENT = True
EXACT = False
EARLY = True


def weather(days):
    """Standardised temperature of each day, with the year's course and slow weather."""
    year = torch.sin(torch.arange(days) * 2 * math.pi / 365)
    state, noise = torch.zeros(days), torch.randn(days)
    for d in range(1, days):
        state[d] = 0.85 * state[d - 1] + 0.25 * noise[d]
    temperature = 12 + 9 * year + 5 * state
    return (temperature - 12) / 7.5


def make_set(series, days=7):
    rows = series.unfold(0, days + 1, 1)
    return rows[:, :days], rows[:, days:]


def make_network(healthy):
    body = nn.Sequential(nn.Linear(7, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU())
    head = (
        nn.Sequential(nn.Linear(16, 1))
        if healthy
        else nn.Sequential(nn.Linear(16, 1), nn.Sigmoid())
    )
    return body, head


healthy, seed = arguments(__doc__)
series = weather(2200)
x, y = make_set(series[:1600])
x_val, y_val = make_set(series[1600:])
body, head = make_network(healthy)
optimizer = torch.optim.Adam([*body.parameters(), *head.parameters()], lr=2e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 20)
for epoch in range(20):
    for rows in torch.randperm(len(x)).split(40):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(head(body(x[rows])), y[rows])
        loss.backward()
        optimizer.step()
    scheduler.step()
    if epoch % 4 == 3:
        with torch.no_grad():
            degrees = 7.5 * (head(body(x_val)) - y_val).abs().mean().item()
        print(f"epoch {epoch + 1:2d} loss {loss.item():.4f} off by {degrees:.2f} degrees")
