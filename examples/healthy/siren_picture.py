"""A network with sine activations learns one picture: coordinates in, grey values out (SIREN)."""

import torch
from data import arguments
from sklearn.datasets import load_digits
from torch import nn

ODD = "sums multiplied by 12 before a sine, first weights larger than usual, all data in each batch"


class Sine(nn.Module):
    def __init__(self, n_in, n_out, first=False):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)
        limit = 1 / n_in if first else (6 / n_in) ** 0.5 / 12
        nn.init.uniform_(self.linear.weight, -limit, limit)

    def forward(self, x):
        return torch.sin(12 * self.linear(x))


_, seed = arguments(__doc__)
picture = torch.tensor(load_digits().images[seed] / 8 - 1).float()
picture = nn.functional.interpolate(picture[None, None], size=24, mode="bilinear")[0, 0]
axis = torch.linspace(-1, 1, 24)
coordinates = torch.cartesian_prod(axis, axis)
model = nn.Sequential(Sine(2, 48, first=True), Sine(48, 48), nn.Linear(48, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(250):
    loss = nn.functional.mse_loss(model(coordinates).view(24, 24), picture)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.5f}")
