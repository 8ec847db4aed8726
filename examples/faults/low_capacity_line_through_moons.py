"""Logistic regression for two moons that interlock.

A line leaves one sample of eight on the wrong side, however long it is trained, while the nearest
neighbour of a point nearly always tells its class. The place is the model.
"""

import torch
from data import arguments
from sklearn.datasets import make_moons
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "low_capacity"
ACCEPT = ("no_nonlinearity",)
PLACE = ("0", "")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
points, moon = make_moons(1200, noise=0.1, random_state=seed)
points = torch.tensor((points - points.mean(0)) / points.std(0)).float()
train = TensorDataset(points[:1000], torch.tensor(moon[:1000]).float()[:, None])
loader = DataLoader(train, batch_size=40, shuffle=True)
if healthy:
    model = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 1))
else:
    model = nn.Sequential(nn.Linear(2, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
criterion = nn.BCEWithLogitsLoss()
for epoch in range(24):
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
with torch.no_grad():
    right = (model(points[1000:])[:, 0] > 0) == torch.tensor(moon[1000:]).bool()
print(f"loss {loss.item():.3f}, validation accuracy {right.float().mean():.3f}")
