"""House prices by an MLP with a home-made tanh whose slope is 60 instead of 1.

The hidden units switch between -1 and 1 like a threshold: hardly a house lies on the slope, so the
two hidden layers get next to no usable gradient. The place is the model.
"""

import torch
import torch.nn.functional as F
from data import arguments, houses
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "saturated_activation"
ACCEPT = ()
PLACE = ("act*", "hidden*")
SILENT = True
EXACT = False
EARLY = True


class SlopedTanh(nn.Module):
    def __init__(self, slope):
        super().__init__()
        self.slope = slope

    def forward(self, z):
        return torch.tanh(self.slope * z)


class HouseNet(nn.Module):
    def __init__(self, slope):
        super().__init__()
        self.hidden1 = nn.Linear(6, 32)
        self.act1 = SlopedTanh(slope)
        self.hidden2 = nn.Linear(32, 16)
        self.act2 = SlopedTanh(slope)
        self.output = nn.Linear(16, 1)

    def forward(self, x):
        x = self.act1(self.hidden1(x))
        x = self.act2(self.hidden2(x))
        return self.output(x).squeeze(1)


healthy, seed = arguments(__doc__)
x, y, x_val, y_val = houses(seed)
train = DataLoader(TensorDataset(x, y), batch_size=75, shuffle=True)
net = HouseNet(slope=1.0 if healthy else 60.0)
optim = torch.optim.RMSprop(net.parameters(), lr=0.005)
sched = torch.optim.lr_scheduler.ExponentialLR(optim, 0.75)
for epoch in range(9):
    for xb, yb in train:
        optim.zero_grad()
        loss = F.mse_loss(net(xb), yb)
        loss.backward()
        optim.step()
    sched.step()
    with torch.no_grad():
        val = F.mse_loss(net(x_val), y_val).item()
print(f"train mse {loss.item():.3f}, validation mse {val:.3f}")
