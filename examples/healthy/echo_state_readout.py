"""An echo state network: a random reservoir that is never trained, and a linear read-out
that is."""

import torch
from data import arguments
from torch import nn

ODD = (
    "most weights are random, need no gradient and never change, no checkpoint was loaded; "
    "the states are made under no_grad and detached"
)

_, seed = arguments(__doc__)
UNITS, WASH = 150, 100


class EchoState(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(UNITS, UNITS, bias=False)
        self.drive = nn.Linear(1, UNITS)
        self.readout = nn.Linear(UNITS + 1, 1)
        with torch.no_grad():
            w = torch.randn(UNITS, UNITS) * (torch.rand(UNITS, UNITS) < 0.1)
            self.inner.weight.copy_(0.9 * w / torch.linalg.eigvals(w).abs().max())
            self.drive.weight.uniform_(-0.6, 0.6)
            self.drive.bias.uniform_(-0.2, 0.2)
        self.inner.requires_grad_(False)
        self.drive.requires_grad_(False)

    @torch.no_grad()
    def states(self, series):
        h, kept = torch.zeros(UNITS), []
        for u in series:
            h = 0.5 * h + 0.5 * torch.tanh(self.inner(h) + self.drive(u.view(1)))
            kept.append(torch.cat([h, u.view(1)]))
        return torch.stack(kept)

    def forward(self, states):
        return self.readout(states).squeeze(1)


def mackey_glass(n):
    x = [1.2 + 0.05 * torch.randn(()).item() for _ in range(18)]
    while len(x) < n + 118:
        x.append(x[-1] + 0.2 * x[-18] / (1 + x[-18] ** 10) - 0.1 * x[-1])
    return torch.tensor(x[118:])


series = mackey_glass(2600)
series = (series - series[:2000].mean()) / series[:2000].std()
net = EchoState()
states, target = net.states(series[:-6])[WASH:], series[6:][WASH:]
mean, std = states[:1900].mean(0), states[:1900].std(0)
states = (states - mean) / std
optimizer = torch.optim.Adam(net.readout.parameters(), lr=2e-3)
for epoch in range(12):
    for rows in torch.randperm(1900).split(38):
        loss = nn.functional.mse_loss(net(states[rows]), target[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        val = nn.functional.mse_loss(net(states[1900:]), target[1900:]).item()
print(f"loss {loss.item():.4f}, validation loss {val:.4f}, variance {target.var():.3f}")
