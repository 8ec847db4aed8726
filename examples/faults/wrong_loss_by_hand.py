"""Six kinds of flowers, one output, and a squared error on the number of the kind, by hand.

The kinds have no order (silent). The place is the loss.
"""

import torch
from data import arguments
from sklearn.datasets import make_blobs
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "wrong_loss"
ACCEPT = ()
PLACE = ("loss*",)
SILENT = True
EXACT = False
EARLY = True


def compute_loss(output, target, healthy):
    if healthy:
        return nn.functional.cross_entropy(output, target)
    return torch.mean((output.squeeze(1) - target.float()) ** 2)


healthy, seed = arguments(__doc__)
x, y = make_blobs(900, n_features=5, centers=6, cluster_std=2.5, random_state=seed)
x = (x - x.mean(0)) / x.std(0)
loader = DataLoader(TensorDataset(torch.tensor(x).float(), torch.tensor(y)), 30, shuffle=True)
model = nn.Sequential(nn.Linear(5, 32), nn.ReLU(), nn.Linear(32, 6 if healthy else 1))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(10):
    for rows, kind in loader:
        loss = compute_loss(model(rows), kind, healthy)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print(f"loss {loss.item():.3f}")
