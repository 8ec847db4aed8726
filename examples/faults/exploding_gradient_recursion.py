"""A recursion h = h + relu(W h + U x) over 40 time steps, trained without clipping.

States and gradients grow by a factor at each time step. The place is the cell.
"""

import torch
from data import arguments
from torch import nn

KIND = "exploding_gradient"
ACCEPT = ("learning_rate_too_high",)
PLACE = ("cell*", "")
SILENT = False
EXACT = False
EARLY = True


class ResidualCell(nn.Module):
    def __init__(self, n_in, n_hidden, gate):
        super().__init__()
        self.w = nn.Linear(n_hidden, n_hidden)
        self.u = nn.Linear(n_in, n_hidden)
        self.gate = gate

    def forward(self, x, h):
        new = torch.relu(self.w(h) + self.u(x))
        return 0.9 * h + 0.1 * new if self.gate else h + new


class Recursion(nn.Module):
    def __init__(self, gate):
        super().__init__()
        self.cell = ResidualCell(1, 24, gate)
        self.readout = nn.Linear(24, 1)

    def forward(self, series):
        h = torch.zeros(series.shape[0], 24)
        for t in range(series.shape[1]):
            h = self.cell(series[:, t], h)
        return self.readout(h)


healthy, seed = arguments(__doc__)
model = Recursion(gate=healthy)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(150):
    series = torch.rand(32, 40, 1)
    target = series.mean(dim=1) * 2 - 1 + series[:, -1] * 0.5
    optimizer.zero_grad()
    loss = ((model(series) - target) ** 2).mean()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.4f}")
