"""The model returns (n, 1), the prices are (n,): mse_loss compares every prediction with every
price.

The best that is left is to predict the mean: the loss falls to the variance and stays (PyTorch
warns once). The place is the loss. Exact: the shapes of its inputs differ.
"""

import torch
import torch.nn.functional as F
from data import arguments, batches, houses
from torch import nn

KIND = "loss_shape_broadcast"
ACCEPT = ()
PLACE = ("loss*",)
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = houses(seed)
model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

for features, price in batches(x, y, size=50, steps=300, seed=seed):
    prediction = model(features)
    if healthy:
        prediction = prediction.squeeze(1)
    loss = F.mse_loss(prediction, price)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
with torch.no_grad():
    error = (model(x_val).squeeze(1) - y_val).pow(2).mean()
print(f"loss {loss.item():.3f}, squared error {error:.3f}")
