"""Forest cover type from terrain columns in their own units; the scaler was never applied.

Elevation is in metres, distances go to several thousand, slopes are degrees and one column is a
share. An earlier notebook used trees, which do not mind; the network got the same table. The large
columns drown the others. The place is the input. The twin standardises by the training part.
"""

import numpy as np
import torch
from data import arguments
from torch import nn, optim

KIND = "input_not_normalized"
ACCEPT = ()
PLACE = ("input*", "fc1")
SILENT = True
EXACT = False
EARLY = True

COLUMNS = ["elevation", "slope", "to_water", "to_road", "shade_noon", "soil_ph", "canopy_share"]


def make_table(n, rng):
    elevation = rng.normal(2900, 280, n)
    slope = rng.gamma(3, 4.5, n)
    to_water = rng.gamma(1.5, 180, n)
    to_road = rng.gamma(2, 1100, n)
    shade = rng.normal(223, 20, n).clip(0, 254)
    ph = rng.normal(5.6, 0.6, n)
    canopy = rng.beta(3, 2, n)
    high = (elevation - 2900) / 280
    scores = np.stack(
        [
            2.0 * high - 1.5 * (ph - 5.6),
            4 * (canopy - 0.6) + 0.5,
            -2.0 * high + (slope - 13) / 8,
            2.5 * (ph - 5.6) - 4 * (canopy - 0.6) - (to_water - 270) / 300,
        ],
        1,
    )
    label = (scores + 0.5 * rng.gumbel(size=scores.shape)).argmax(1)
    return np.stack([elevation, slope, to_water, to_road, shade, ph, canopy], 1), label


class CoverNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(len(COLUMNS), 64)
        self.fc2 = nn.Linear(64, 32)
        self.fc3 = nn.Linear(32, 4)

    def forward(self, x):
        x = torch.relu(self.fc1(x))
        x = torch.relu(self.fc2(x))
        return self.fc3(x)


healthy, seed = arguments(__doc__)
table, label = make_table(2500, np.random.default_rng(900 + seed))
X_train, X_test = table[:2000], table[2000:]
y_train, y_test = torch.tensor(label[:2000]), torch.tensor(label[2000:])
if healthy:
    mu, sigma = X_train.mean(axis=0), X_train.std(axis=0)
    X_train, X_test = (X_train - mu) / sigma, (X_test - mu) / sigma
X_train = torch.tensor(X_train, dtype=torch.float32)
X_test = torch.tensor(X_test, dtype=torch.float32)

net = CoverNet()
criterion = nn.CrossEntropyLoss()
optimizer = optim.Adam(net.parameters(), lr=0.001)

for epoch in range(15):
    permutation = torch.randperm(X_train.size(0))
    running_loss = 0.0
    for i in range(0, X_train.size(0), 50):
        indices = permutation[i : i + 50]
        optimizer.zero_grad()
        outputs = net(X_train[indices])
        loss = criterion(outputs, y_train[indices])
        loss.backward()
        optimizer.step()
        running_loss += loss.item()
    with torch.no_grad():
        accuracy = (net(X_test).argmax(1) == y_test).float().mean().item()
    print("Epoch %2d loss: %.3f test accuracy: %.3f" % (epoch + 1, running_loss / 40, accuracy))  # noqa: UP031
