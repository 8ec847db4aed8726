"""Adds up the doses given in a long record with a recurrent net whose weights blow signals up.

A ReLU recurrence is started from an unit matrix, as is advised, but with the gain that is
meant for ReLU layers in feed-forward nets. Over forty time steps the factor of 1.41 is taken forty
times, and gradients with it. The place is the recurrent layer.
The twin starts from a gain of 1 and so keeps the length of the signal.
"""

import math

import torch
from data import arguments
from torch import nn, optim

KIND = "exploding_gradient"
ACCEPT = ("poor_weight_init", "loss_spike")
PLACE = ("rnn", "rnn.weight_hh_l0")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
STEPS, LENGTH, HIDDEN = 400, 40, 32
generator = torch.Generator().manual_seed(seed)


def records(n):
    doses = torch.rand(n, LENGTH, generator=generator)
    given = (torch.rand(n, LENGTH, generator=generator) < 0.1).float()
    return torch.stack([doses, given], 2), (doses * given).sum(1)


class DoseSum(nn.Module):
    def __init__(self, gain):
        super().__init__()
        self.rnn = nn.RNN(2, HIDDEN, nonlinearity="relu", batch_first=True)
        self.read = nn.Linear(HIDDEN, 1)
        with torch.no_grad():
            self.rnn.weight_hh_l0.copy_(gain * torch.eye(HIDDEN))
        nn.init.normal_(self.rnn.weight_ih_l0, std=0.05)
        nn.init.zeros_(self.rnn.bias_ih_l0)
        nn.init.zeros_(self.rnn.bias_hh_l0)

    def forward(self, x):
        return self.read(self.rnn(x)[0][:, -1]).squeeze(1)


model = DoseSum(gain=1.0 if healthy else math.sqrt(2.0))
optimizer = optim.Adam(model.parameters(), lr=1e-3)
x_val, y_val = records(500)
for step in range(1, STEPS + 1):
    x, y = records(64)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    if step % 50 == 0 or step == 1:
        with torch.no_grad():
            val = nn.functional.mse_loss(model(x_val), y_val)
        print(f"step {step} loss {loss.item():.4g} validation {val.item():.4g}")
