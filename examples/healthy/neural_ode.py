"""An Euler scheme in forward(): one small network is called 25 times (a neural ODE)."""

import torch
from data import arguments
from sklearn.datasets import make_circles
from torch import nn

ODD = "the same layers run 25 times in a pass, time is appended to the inputs"


class Field(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(dim + 1, 24), nn.Tanh(), nn.Linear(24, dim))

    def forward(self, t, x):
        return self.net(torch.cat([x, t.expand(len(x), 1)], 1))


class NeuralODE(nn.Module):
    def __init__(self, dim=3, steps=25):
        super().__init__()
        self.field, self.steps = Field(dim), steps
        self.head = nn.Linear(dim, 2)

    def forward(self, x):
        x = torch.cat([x, torch.zeros(len(x), 1)], 1)
        for i in range(self.steps):
            x = x + self.field(torch.tensor(i / self.steps), x) / self.steps
        return self.head(x)


_, seed = arguments(__doc__)
points, ring = make_circles(800, noise=0.06, factor=0.5, random_state=seed)
points, ring = torch.tensor(points).float(), torch.tensor(ring)
model = NeuralODE()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for step in range(150):
    rows = torch.randint(0, 800, (64,))
    loss = nn.functional.cross_entropy(model(points[rows]), ring[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}")
