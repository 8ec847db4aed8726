"""Solubility of molecules from descriptors; the loop that builds the layers puts a ReLU after the
last one, too.

`for a, b in pairwise(sizes): layers += [Linear(a, b), ReLU()]` is short and one ReLU too long: the
standardised solubility is negative for half of the molecules, and the network's output never is.
The place is the model's output / the loss. The twin drops the last activation.
"""

from itertools import pairwise

import torch
from data import arguments, standardise
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "output_activation_range"
ACCEPT = ("dead_relu",)
PLACE = ("loss", "labels", "5", "4")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


def mlp(*sizes):
    layers = []
    for a, b in pairwise(sizes):
        layers += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*(layers[:-1] if healthy else layers))


def molecules(n):
    g = torch.Generator().manual_seed(300 + seed)
    weight = 120 + 350 * torch.rand(n, generator=g)
    rings = torch.poisson(weight / 130, generator=g)
    donors = torch.poisson(1.5 * torch.ones(n), generator=g)
    polar = 20 * donors + 30 * torch.rand(n, generator=g) + 10
    logp = weight / 120 + 0.5 * rings - 0.02 * polar + 0.5 * torch.randn(n, generator=g)
    charge = 0.4 * torch.randn(n, generator=g)
    log_s = (
        0.5
        - 0.9 * logp
        - 0.004 * weight
        + 0.6 * torch.sin(polar / 15)
        + 1.2 * charge * donors.clamp(max=3) / 3
    )
    return torch.stack([weight, rings, donors, polar, logp, charge], 1), log_s + 0.25 * torch.randn(
        n, generator=g
    )


descriptors, log_s = molecules(2600)
x, x_val = standardise(descriptors[:2000], descriptors[2000:])
y, y_val = standardise(log_s[:2000, None], log_s[2000:, None])
loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)
model = mlp(6, 64, 64, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
loss_fn = nn.MSELoss()

for epoch in range(15):
    model.train()
    for batch, target in loader:
        optimizer.zero_grad()
        loss = loss_fn(model(batch), target)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        train, val = loss_fn(model(x), y).item(), loss_fn(model(x_val), y_val).item()
    print(
        f"epoch {epoch} train {train:.4f} val {val:.4f} val R2 {1 - val / y_val.var().item():.3f}"
    )
