"""Predicts the strength of steel strips from the rolling mill's process data; a deep network of
sigmoid units passes nearly no gradient to its first layers.

The network was enlarged layer by layer, in the hope of a better fit, from a small one of the
nineties that a colleague had described, with its sigmoid units. Each of them takes three quarters
or more off the gradient on its way back.
The place is the first layers and the activations between.
The twin has ReLU units and is otherwise the same.
"""

import itertools

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "vanishing_gradient"
ACCEPT = ()
PLACE = ("stack", "stack.0", "stack.2", "stack.4")
SILENT = False
EXACT = False
EARLY = True


def strips(n, generator):
    """Carbon, manganese, niobium, furnace, rolling and coiling temperature, speed, thickness."""
    z = torch.randn(n, 8, generator=generator)
    c, mn, nb, furnace, rolling, coiling, speed, thick = z.T
    strength = 0.6 * c + 0.4 * mn + 0.5 * nb * torch.sigmoid(furnace)
    strength = strength - 0.5 * coiling + 0.3 * (rolling - 0.5 * speed).abs() - 0.25 * thick
    strength = strength + 0.3 * torch.tanh(2 * coiling) * c
    return z, (strength + 0.1 * torch.randn(n, generator=generator)).unsqueeze(1)


def build(sizes, unit):
    layers = []
    for a, b in itertools.pairwise(sizes[:-1]):
        layers += [nn.Linear(a, b), unit()]
    layers.append(nn.Linear(sizes[-2], sizes[-1]))
    return nn.Sequential(*layers)


class StrengthModel(nn.Module):
    def __init__(self, unit):
        super().__init__()
        self.stack = build([8] + [40] * 10 + [1], unit)

    def forward(self, x):
        return self.stack(x)


def r2(model, x, y):
    model.eval()
    with torch.no_grad():
        return 1 - ((model(x) - y) ** 2).mean().item() / y.var().item()


def main():
    healthy, seed = arguments(__doc__)
    generator = torch.Generator().manual_seed(seed)
    x, y = strips(2400, generator)
    x_val, y_val = strips(600, generator)
    middle, spread = y.mean(), y.std()
    y, y_val = (y - middle) / spread, (y_val - middle) / spread

    model = StrengthModel(nn.ReLU if healthy else nn.Sigmoid)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)
    for epoch in range(1, 17):
        model.train()
        total = 0.0
        for xb, yb in loader:
            loss = nn.functional.mse_loss(model(xb), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        if epoch % 4 == 0:
            fit = r2(model, x_val, y_val)
            print(f"epoch {epoch}: loss {total / len(loader):.4f} val R2 {fit:.3f}")


main()
