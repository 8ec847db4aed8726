"""Forecasts the flow at a junction from the last three hours; the encoder's gradients pile up.

Encoder and head have an optimizer each, since the head is to learn faster. When the second
optimizer came in, its zero_grad and step were added to the loop, and the zero_grad of the first
was lost in the tidying up.
The place is the loop, for the encoder's optimizer.
The twin clears the gradients of both.
"""

import math

import torch
from data import arguments
from torch import nn

KIND = "gradients_not_cleared"
ACCEPT = ()
PLACE = ("loop", "optimizer", "encoder", "encoder.weight_ih_l0", "encoder.weight_hh_l0")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


def counts(days):
    """Vehicles per quarter of an hour, standardised."""
    t = torch.arange(days * 96) / 96
    hour = t % 1 * 24
    work = ((t.long() % 7) < 5).float()
    morning = torch.exp(-((hour - 8) ** 2) / 3) * work
    evening = torch.exp(-((hour - 17.5) ** 2) / 5) * (0.5 + 0.5 * work)
    level = 0.4 * torch.sin((hour - 6) / 24 * 2 * math.pi) + 2 * morning + 1.6 * evening
    noise = torch.zeros(len(t))
    shocks = torch.randn(len(t)) * 0.12
    for i in range(1, len(t)):
        noise[i] = 0.8 * noise[i - 1] + shocks[i]
    flow = level + noise
    return (flow - flow.mean()) / flow.std()


flow = counts(35)
windows = flow.unfold(0, 14, 1)
x, y = windows[:, :12, None], windows[:, 13:14]
cut = 28 * 96
x_train, y_train, x_val, y_val = x[:cut], y[:cut], x[cut + 14 :], y[cut + 14 :]

encoder = nn.GRU(1, 32, batch_first=True)
head = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))
slow = torch.optim.SGD(encoder.parameters(), lr=0.1, momentum=0.9)
fast = torch.optim.SGD(head.parameters(), lr=0.1, momentum=0.9)
to_clear = (slow, fast) if healthy else (fast,)


def forecast(past):
    states, _ = encoder(past)
    return head(states[:, -1])


step = 0
for epoch in range(8):
    for rows in torch.randperm(len(x_train)).split(64):
        loss = nn.functional.mse_loss(forecast(x_train[rows]), y_train[rows])
        for optimizer in to_clear:
            optimizer.zero_grad()
        loss.backward()
        slow.step()
        fast.step()
        if step % 40 == 0:
            print(f"step {step}: loss {loss.item():.4f}")
        step += 1
    with torch.no_grad():
        error = nn.functional.mse_loss(forecast(x_val), y_val).item()
    print(f"epoch {epoch}: validation error {error:.4f}")
