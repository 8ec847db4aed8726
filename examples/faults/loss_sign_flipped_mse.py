"""-F.mse_loss, because the function it was copied from returned a score to be maximised.

The error grows without end while the loss "falls". The place is the loss.
"""

import torch
import torch.nn.functional as F
from data import arguments, houses
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "loss_sign_flipped"
ACCEPT = ()
PLACE = ("loss*", "")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = houses(seed)
model = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 1))


def score(prediction, price):
    return -F.mse_loss(prediction, price)


optimizer = torch.optim.SGD(model.parameters(), lr=0.004)
for epoch in range(10):
    for features, price in DataLoader(TensorDataset(x, y), batch_size=50, shuffle=True):
        loss = score(model(features).squeeze(1), price)
        if healthy:
            loss = -loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print(f"loss {loss.item():.4g}")
