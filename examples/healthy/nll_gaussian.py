"""A network gives mean and variance; the Gaussian likelihood goes below 0."""

import torch
from data import arguments, batches
from torch import nn

ODD = "a loss that becomes negative, because densities may exceed 1"

_, seed = arguments(__doc__)
x = 4 * torch.rand(2000, 1) - 2
y = (2 * x).sin() + (0.05 + 0.1 * x.abs()) * torch.randn(2000, 1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(1, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh())
        self.mean = nn.Linear(48, 1)
        self.deviation = nn.Sequential(nn.Linear(48, 1), nn.Softplus())

    def forward(self, value):
        h = self.body(value)
        return self.mean(h), self.deviation(h) + 1e-3


model = Net()
criterion = nn.GaussianNLLLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for value, target in batches(x, y, size=64, steps=350, seed=seed):
    mean, deviation = model(value)
    loss = criterion(mean, target, deviation.square())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}")
