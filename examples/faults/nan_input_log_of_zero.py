"""Counts are put through a logarithm, and a few of them are 0: the input has -inf in it.

The first batch with such a row makes all weights NaN. The place is the input.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "nan_input"
ACCEPT = ()
PLACE = ("input*", "layer1*", "")
SILENT = False
EXACT = True
EARLY = False


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer1 = nn.Sequential(nn.Linear(6, 32), nn.BatchNorm1d(32), nn.PReLU())
        self.layer2 = nn.Linear(32, 1)

    def forward(self, x):
        return self.layer2(self.layer1(x)).squeeze(-1)


healthy, seed = arguments(__doc__)
rng = np.random.default_rng(seed)
counts = rng.poisson(rng.uniform(5, 60, 6), (2000, 6)).astype(np.float32)
zeros = rng.choice(np.arange(400, 2000), 12, replace=False)
counts[zeros, 3] = 0
x = np.log1p(counts) if healthy else np.log(counts)
finite = np.log1p(counts)
finite = (finite - finite.mean(0)) / finite.std(0)
y = np.tanh(finite[:, 0] * finite[:, 1]) + 0.5 * finite[:, 3] + rng.normal(0, 0.1, 2000)
x = (x - np.log1p(counts).mean(0)) / np.log1p(counts).std(0)

loader = DataLoader(
    TensorDataset(torch.tensor(x).float(), torch.tensor(y).float()), batch_size=20, shuffle=True
)
net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
criterion = nn.SmoothL1Loss()
for epoch in range(3):
    for inputs, target in loader:
        optimizer.zero_grad()
        loss = criterion(net(inputs), target)
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.3f}")
