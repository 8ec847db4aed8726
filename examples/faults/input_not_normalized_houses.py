"""A column of people in the thousands beside one of income below 10: StandardScaler was left out.

Adam gets somewhere, since the column of people is not all; the loss falls, to far more than it
could be (silent). The place is the input.
"""

import torch
import torch.nn.functional as F
from data import arguments, houses
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "input_not_normalized"
ACCEPT = ()
PLACE = ("input*", "fc1", "")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = houses(seed, raw=not healthy)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(6, 48)
        self.fc2 = nn.Linear(48, 24)
        self.fc3 = nn.Linear(24, 1)

    def forward(self, features):
        return self.fc3(torch.tanh(self.fc2(torch.tanh(self.fc1(features))))).squeeze(1)


model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(10):
    model.train()
    for features, price in DataLoader(TensorDataset(x, y), batch_size=50, shuffle=True):
        optimizer.zero_grad()
        loss = F.mse_loss(model(features), price)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        val_loss = F.mse_loss(model(x_val), y_val)
print(f"loss {loss.item():.3f}, validation {val_loss.item():.3f}")
