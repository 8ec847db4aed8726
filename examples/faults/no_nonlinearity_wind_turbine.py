"""A multilayer regression of a wind turbine's power from weather, with affine layers stacked
without activations.

The user writes three hidden layers by hand in forward and forgets the activation between them, so
that the network is one linear map however deep. The place is the hidden layers (fc1 to fc3) of
the network.
"""

import numpy as np
import torch
from data import arguments, standardise
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "no_nonlinearity"
ACCEPT = ("low_capacity",)
PLACE = ("", "fc*")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


def turbine(n, seed):
    r = np.random.default_rng(seed)
    wind = r.weibull(2.0, n) * 9
    direction = r.uniform(-np.pi, np.pi, n)
    density = r.normal(1.2, 0.06, n)
    turbulence = r.gamma(4, 0.03, n)
    temperature = 15 - (density - 1.2) * 200 + r.normal(0, 4, n)
    curve = 2000 / (1 + np.exp(-(wind - 8.5) / 1.2)) * (wind < 22)
    wake = (
        1
        - 0.45 * np.exp(-((direction - 0.8) ** 2) / 0.15)
        - 0.3 * np.exp(-((direction + 2) ** 2) / 0.2)
    )
    power = curve * wake * (density / 1.2) * (1 - 0.6 * turbulence) + r.normal(0, 40, n)
    x = np.stack([wind, np.sin(direction), np.cos(direction), density, turbulence, temperature], 1)
    return torch.tensor(x, dtype=torch.float32), torch.tensor(power[:, None], dtype=torch.float32)


class PowerNet(nn.Module):
    def __init__(self, columns, width=64):
        super().__init__()
        self.fc1 = nn.Linear(columns, width)
        self.fc2 = nn.Linear(width, width)
        self.fc3 = nn.Linear(width, width)
        self.out = nn.Linear(width, 1)
        self.act = nn.ReLU() if healthy else nn.Identity()

    def forward(self, x):
        x = self.act(self.fc1(x))
        x = self.act(self.fc2(x))
        x = self.act(self.fc3(x))
        return self.out(x)


x, y = turbine(4000, seed)
x, x_val = standardise(x[:3000], x[3000:])
y, y_val = standardise(y[:3000], y[3000:])
loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)

model = PowerNet(x.shape[1])
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
loss_fn = nn.MSELoss()

for epoch in range(25):
    model.train()
    total = 0.0
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = loss_fn(model(xb), yb)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(xb)
    model.eval()
    with torch.no_grad():
        val = loss_fn(model(x_val), y_val).item()
    if epoch % 4 == 0:
        print(
            f"epoch {epoch} train {total / len(x):.4f} validation mse {val:.4f} r2 {1 - val / y_val.var():.3f}"  # noqa: E501
        )
