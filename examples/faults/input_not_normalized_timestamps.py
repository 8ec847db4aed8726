"""The moment of the order, in seconds since 1970, is a column beside amounts and ages.

1.6e9 times a weight drowns all other columns. The place is the input.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

KIND = "input_not_normalized"
ACCEPT = ("dead_relu",)
PLACE = ("input*", "hidden1", "")
SILENT = False
EXACT = False
EARLY = True


class ChurnNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden1 = nn.Linear(5, 32)
        self.hidden2 = nn.Linear(32, 16)
        self.output = nn.Linear(16, 1)

    def forward(self, x):
        x = torch.relu(self.hidden1(x))
        x = torch.relu(self.hidden2(x))
        return self.output(x).squeeze(-1)


healthy, seed = arguments(__doc__)
rng = np.random.default_rng(seed)
n = 2400
ordered = rng.uniform(1.58e9, 1.64e9, n)
amount = rng.lognormal(3, 0.5, n)
age = rng.integers(18, 80, n)
visits = rng.poisson(6, n)
returns = rng.binomial(3, 0.2, n)
x = np.column_stack([ordered, amount, age, visits, returns])
z = (x - x.mean(0)) / x.std(0)
score = 1.5 * z[:, 3] - z[:, 4] + 0.8 * z[:, 0] * (z[:, 2] > 0) - 0.5 * z[:, 1]
y = (score + rng.normal(0, 0.5, n) > 0).astype("float32")
if healthy:
    x = z
dataset = TensorDataset(torch.tensor(x, dtype=torch.float32), torch.tensor(y))
train_set, val_set = random_split(dataset, [2000, 400])
train_loader = DataLoader(train_set, batch_size=50, shuffle=True)
val_loader = DataLoader(val_set, batch_size=100)

net = ChurnNet()
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(net.parameters(), lr=0.002)
for epoch in range(8):
    net.train()
    for inputs, labels in train_loader:
        optimizer.zero_grad()
        loss = criterion(net(inputs), labels)
        loss.backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        val = [criterion(net(inputs), labels).item() for inputs, labels in val_loader]
    print(f"epoch {epoch}: train {loss.item():.3f}, val {sum(val) / len(val):.3f}")
