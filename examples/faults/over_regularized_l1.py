"""A hand-written L1 penalty of 0.05 on all weights is added to the loss.

It is many times larger than what the loss of the predictions can gain: the total falls (silent)
because the weights go to 0, the predictions are the mean. The place is the loss.
"""

import torch
from data import arguments, diabetes
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "over_regularized"
ACCEPT = ()
PLACE = ("loss*", "optimizer", "*")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = diabetes(seed)
strength = 2e-4 if healthy else 0.05
model = nn.Sequential(nn.Linear(10, 24), nn.ReLU(), nn.Linear(24, 24), nn.ReLU(), nn.Linear(24, 1))
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(22):
    for features, target in DataLoader(
        TensorDataset(x, y[:, None]), batch_size=33, shuffle=True, drop_last=True
    ):
        optimizer.zero_grad()
        error = criterion(model(features), target)
        penalty = sum(parameter.abs().sum() for parameter in model.parameters())
        loss = error + strength * penalty
        loss.backward()
        optimizer.step()
print(f"loss {loss.item():.3f}, error {error.item():.3f}")
