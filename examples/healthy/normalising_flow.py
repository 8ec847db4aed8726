"""A flow of affine couplings learns the density of two moons."""

import torch
from data import arguments
from sklearn.datasets import make_moons
from torch import nn

ODD = "a hand-made loss without targets, scales by exp, layers that start at 0"


class Coupling(nn.Module):
    def __init__(self, swap):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(1, 32), nn.ReLU(), nn.Linear(32, 2))
        nn.init.zeros_(self.net[-1].weight)
        nn.init.zeros_(self.net[-1].bias)
        self.swap = swap

    def forward(self, x):
        a, b = x[:, :1], x[:, 1:]
        if self.swap:
            a, b = b, a
        log_scale, shift = self.net(a).chunk(2, 1)
        log_scale = torch.tanh(log_scale)
        b = b * torch.exp(log_scale) + shift
        return torch.cat([b, a] if self.swap else [a, b], 1), log_scale.sum(1)


class Flow(nn.Module):
    def __init__(self, layers=6):
        super().__init__()
        self.layers = nn.ModuleList(Coupling(i % 2 == 1) for i in range(layers))

    def forward(self, x):
        total = 0.0
        for layer in self.layers:
            x, log_det = layer(x)
            total = total + log_det
        return -0.5 * (x**2).sum(1) + total


_, seed = arguments(__doc__)
points = torch.tensor(make_moons(3000, noise=0.05, random_state=seed)[0]).float() - 0.3
flow = Flow()
optimizer = torch.optim.Adam(flow.parameters(), lr=3e-3)
for step in range(300):
    loss = -flow(points[torch.randint(0, 3000, (128,))]).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}")
