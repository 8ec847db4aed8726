"""An echo state network: a random recurrent reservoir of 200 units is never trained, only the
readout of it is.

Forty thousand weights get no gradient, on purpose, and the one layer that learns is enough to name
the next value of a chaotic series. There is no fault and no place.
"""

import torch
from data import arguments
from torch import nn

ODD = "99 % of the weights are frozen at random values and never change"


class Reservoir(nn.Module):
    def __init__(self, units=200):
        super().__init__()
        self.recurrent = nn.RNN(1, units, batch_first=True)
        with torch.no_grad():
            w = torch.randn(units, units) * (torch.rand(units, units) < 0.1)
            self.recurrent.weight_hh_l0.copy_(0.4 * w / torch.linalg.eigvals(w).abs().max())
            self.recurrent.weight_ih_l0.uniform_(-0.8, 0.8)
            self.recurrent.bias_hh_l0.uniform_(-1.2, 1.2)
        self.recurrent.requires_grad_(False)
        self.readout = nn.Linear(units, 1)

    def forward(self, series):
        states, _ = self.recurrent(series)
        return self.readout(states)


def henon(n, length):
    a = torch.empty(n).uniform_(-0.1, 0.1)
    b = torch.empty(n).uniform_(-0.1, 0.1)
    seen = []
    for _ in range(length + 50):
        a, b = 1 - 1.3 * a * a + b, 0.3 * a
        seen.append(a)
    z = torch.stack(seen[50:], 1).unsqueeze(-1)
    return (z - 0.28) / 0.71


arguments(__doc__)
train, test = henon(200, 61), henon(50, 61)
net = Reservoir()
optimizer = torch.optim.Adam(net.readout.parameters(), lr=1e-2)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
for epoch in range(30):
    for series in train[torch.randperm(200)].split(20):
        loss = nn.functional.mse_loss(net(series[:, :-1])[:, 10:], series[:, 11:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    scheduler.step()
    if epoch % 6 == 5:
        with torch.no_grad():
            error = nn.functional.mse_loss(net(test[:, :-1])[:, 10:], test[:, 11:])
        print(f"epoch {epoch}: loss {loss:.5f}, test {error:.5f}")
