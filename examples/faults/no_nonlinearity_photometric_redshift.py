"""Estimates the redshift of galaxies from five magnitudes; the layers follow each other with no
activation between them.

The network was rewritten from a list of layers to named ones, and the calls of the activation in
forward went with the list. Four linear layers in a row are one linear layer.
The place is the chain of layers.
The twin puts the activation back.
"""

import numpy as np
import torch
from data import arguments, standardise
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "no_nonlinearity"
ACCEPT = ("low_capacity",)
PLACE = ("layers", "layers.0", "layers.1", "layers.2", "first", "second", "third", "out")
SILENT = True
EXACT = True
EARLY = True


def galaxies(n, seed):
    r = np.random.default_rng(seed)
    z = r.gamma(3.0, 0.25, n).clip(0.02, 2.5)
    age = r.uniform(0, 1, n)
    waves = np.array([355, 470, 620, 750, 890]) / (1 + z[:, None])
    jump = 1 / (1 + np.exp(-(waves - 400) / 25))  # light rises at 400 nm
    dust = r.normal(0, 0.1, n)[:, None] * (500 / waves)
    light = -2.5 * np.log10(0.15 + jump * (0.5 + age[:, None])) + dust
    light = light + 20 + 2 * np.log10(z[:, None]) + r.normal(0, 0.5, (n, 1))
    light = light + r.normal(0, 0.03, light.shape)
    colours = light[:, :-1] - light[:, 1:]
    x = np.column_stack([colours, light[:, 3]])
    return torch.tensor(x, dtype=torch.float32), torch.tensor(np.log1p(z), dtype=torch.float32)


class RedshiftNet(nn.Module):
    def __init__(self, activation):
        super().__init__()
        self.first = nn.Linear(5, 64)
        self.second = nn.Linear(64, 64)
        self.third = nn.Linear(64, 64)
        self.out = nn.Linear(64, 1)
        self.activation = activation

    def forward(self, x):
        x = self.activation(self.first(x))
        x = self.activation(self.second(x))
        x = self.activation(self.third(x))
        return self.out(x).squeeze(-1)


if __name__ == "__main__":
    healthy, seed = arguments(__doc__)
    x, y = galaxies(3000, seed)
    x_val, y_val = galaxies(1000, seed + 77)
    x, x_val = standardise(x, x_val)
    mean, std = y.mean(), y.std()
    loader = DataLoader(TensorDataset(x, (y - mean) / std), batch_size=64, shuffle=True)
    model = RedshiftNet(nn.SiLU() if healthy else nn.Identity())
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(15):
        losses = []
        for rows, target in loader:
            loss = nn.functional.mse_loss(model(rows), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        if epoch % 3 == 2:
            with torch.no_grad():
                z = torch.expm1(model(x_val) * std + mean)
            true = torch.expm1(y_val)
            scatter = ((z - true) / (1 + true)).abs().mean()
            print(f"epoch {epoch + 1:2d}: loss {np.mean(losses):.4f}, scatter {scatter:.4f}")
