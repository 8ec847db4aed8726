"""Foretells a reservoir's fill from inflows by a ReLU RNN whose recurrent weights are too large.

The recurrent weights are drawn with a standard deviation of 0.3, from a page about small networks.
With 48 units each step makes the state larger by about a half, and the gradient with it: over
forty steps it bursts, and Adam walks about among enormous losses.
The place is the recurrent cell. The twin leaves PyTorch's initial weights.
"""

import torch
from data import arguments
from torch import nn

KIND = "exploding_gradient"
ACCEPT = ("poor_weight_init", "loss_spike")
PLACE = ("rnn", "rnn.weight_hh_l0")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
STEPS = 40


def inflows(n, g):
    """Rain and snow melt for each hour; the fill leaks, and melt comes with a delay."""
    x = torch.randn(n, STEPS, 2, generator=g)
    x[..., 0] = x[..., 0].clamp(min=0) * 1.5 - 0.5
    fill = torch.zeros(n)
    for t in range(STEPS):
        melt = x[:, max(t - 3, 0), 1]
        fill = 0.85 * fill + 0.4 * x[:, t, 0] + 0.3 * melt
    return x, fill


class Reservoir(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.rnn = nn.RNN(2, hidden, nonlinearity="relu", batch_first=True)
        self.out = nn.Linear(hidden, 1)
        if not healthy:
            nn.init.normal_(self.rnn.weight_hh_l0, std=0.3)

    def forward(self, x):
        _, h = self.rnn(x)
        return self.out(h[-1]).squeeze(-1)


g = torch.Generator().manual_seed(seed)
x_val, y_val = inflows(500, g)
model = Reservoir()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for step in range(500):
    x, y = inflows(32, g)
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 99:
        with torch.no_grad():
            val = nn.functional.mse_loss(model(x_val), y_val).item()
        print(f"step {step + 1}: loss {loss.item():.4f}, validation {val:.4f}")
