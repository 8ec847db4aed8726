"""Solubility of compounds from molecular descriptors; the hidden tanh units are stuck at -1 and 1.

The hidden activation has a temperature, taken from a model whose units summed a few tiny numbers.
Here the sums are of the order of one, and divided by 0.03 they drive nearly every tanh to its flat
ends, where hardly any gradient comes back: the layers before it stay almost as they were drawn.
The place is the hidden activations.
The twin has a temperature of 1.
"""

import numpy as np
import torch
from data import arguments

KIND = "saturated_activation"
ACCEPT = ("vanishing_gradient",)
PLACE = ("body", "body.0", "body.1", "body.2", "body.3", "body.4", "body.5")
SILENT = True
EXACT = False
EARLY = True


class SharpTanh(torch.nn.Module):
    def __init__(self, temperature):
        super().__init__()
        self.temperature = temperature

    def forward(self, x):
        return torch.tanh(x / self.temperature)


class Solubility(torch.nn.Module):
    def __init__(self, n_descriptors, width=48, temperature=1.0):
        super().__init__()
        body = []
        for n_in in (n_descriptors, width, width):
            body += [torch.nn.Linear(n_in, width), SharpTanh(temperature)]
        self.body = torch.nn.Sequential(*body)
        self.readout = torch.nn.Linear(width, 1)

    def forward(self, x):
        return self.readout(self.body(x)).squeeze(-1)


def compounds(n, seed):
    rng = np.random.default_rng(seed)
    heavy = rng.integers(5, 40, n)
    rings = rng.binomial(4, np.clip(heavy / 60, 0, 1))
    donors = rng.poisson(1.2, n)
    acceptors = rng.poisson(2.5, n)
    rotatable = rng.binomial(heavy, 0.15)
    logp = 0.12 * heavy - 0.5 * donors - 0.35 * acceptors + rng.normal(0, 0.8, n)
    area = 12 * donors + 9 * acceptors + rng.normal(0, 6, n)
    charge = rng.normal(0, 1, n)
    table = np.stack([heavy, rings, donors, acceptors, rotatable, logp, area, charge], 1)
    logs = (
        0.8
        - 0.7 * logp
        - 0.03 * heavy
        - 0.25 * rings * (logp > 1)
        + 0.1 * rotatable
        + 0.4 * np.tanh(charge) * donors
        + rng.normal(0, 0.3, n)
    )
    return table.astype(np.float32), logs.astype(np.float32)


if __name__ == "__main__":
    healthy, seed = arguments(__doc__)
    table, logs = compounds(2000, seed)
    table = (table - table[:1500].mean(0)) / table[:1500].std(0)
    logs = (logs - logs[:1500].mean()) / logs[:1500].std()
    x, y = torch.from_numpy(table[:1500]), torch.from_numpy(logs[:1500])
    x_val, y_val = torch.from_numpy(table[1500:]), torch.from_numpy(logs[1500:])

    model = Solubility(x.shape[1], temperature=1.0 if healthy else 0.03)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-3)
    order = torch.Generator().manual_seed(seed)
    for epoch in range(1, 21):
        squared = 0.0
        for rows in torch.randperm(len(x), generator=order).split(50):
            optimizer.zero_grad()
            loss = torch.mean((model(x[rows]) - y[rows]) ** 2)
            loss.backward()
            optimizer.step()
            squared += loss.item() * len(rows)
        if epoch % 4 == 0:
            with torch.no_grad():
                rmse = torch.mean((model(x_val) - y_val) ** 2).sqrt()
            print(f"epoch {epoch:2d}  train mse {squared / len(x):.3f}  val rmse {rmse:.3f}")
