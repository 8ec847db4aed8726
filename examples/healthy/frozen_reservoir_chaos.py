"""An echo state network forecasts the Lorenz system: a large random recurrent layer that is never
trained, and a readout.

It looks odd: nearly all parameters are frozen at random values and only the last layer learns. It
is sound: that is what reservoir computing is; the fixed recurrent weights have a spectral radius
below one, and the readout alone reaches a small error on the later, unseen part of the
trajectory.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = (
    "An echo state network forecasts the Lorenz system: a large random recurrent layer that "
    "is never trained, and a readout"
)
_, seed = arguments(__doc__)

r = np.random.default_rng(210 + seed)
STEPS, AHEAD, WASHOUT = 4200, 4, 100
path = np.empty((STEPS, 3))
state = np.array([1.0, 1.0, 20.0]) + r.normal(0, 1, 3)
for i in range(-500, STEPS):
    for _inner in range(4):
        a, b, c = state
        state = state + 0.005 * np.array([10 * (b - a), a * (28 - c) - b, a * b - 8 / 3 * c])
    if i >= 0:
        path[i] = state
path = torch.tensor(path, dtype=torch.float32)
path = (path - path[:3200].mean(0)) / path[:3200].std(0)
path = path + 0.02 * torch.randn(path.shape)


class Reservoir(nn.Module):
    def __init__(self, size=200, radius=0.8):
        super().__init__()
        self.size = size
        self.inward = nn.Linear(3, size)
        self.recurrent = nn.Linear(size, size, bias=False)
        self.readout = nn.Linear(size, 3)
        with torch.no_grad():
            self.inward.weight.uniform_(-0.4, 0.4)
            self.recurrent.weight.normal_()
            self.recurrent.weight.mul_(
                radius / torch.linalg.eigvals(self.recurrent.weight).abs().max()
            )
        for part in (self.inward, self.recurrent):
            part.requires_grad_(False)

    @torch.no_grad()
    def states(self, series):
        h, kept = torch.zeros(self.size), []
        for value in series:
            h = 0.3 * h + 0.7 * torch.tanh(self.inward(value) + self.recurrent(h))
            kept.append(h)
        return torch.stack(kept)

    def forward(self, states):
        return self.readout(states)


model = Reservoir()
states = model.states(path)[WASHOUT:-AHEAD]
target = path[WASHOUT + AHEAD :]
center = states[:3000].mean(0)
states = states - center
train, val = slice(0, 3000), slice(3020, None)
loader = DataLoader(TensorDataset(states[train], target[train]), batch_size=50, shuffle=True)
optimizer = torch.optim.Adam(model.readout.parameters(), lr=3e-3)
EPOCHS = 20
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)
for epoch in range(EPOCHS):
    total = 0.0
    for h, later in loader:
        loss = nn.functional.mse_loss(model(h), later)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(h)
    scheduler.step()
    with torch.no_grad():
        error = nn.functional.mse_loss(model(states[val]), target[val]).item()
    print(f"epoch {epoch:2d} train {total / 3000:.4f} val {error:.4f}")
