"""Yield of wheat fields: the forecast has shape (n, 1), the measured yields (n), loss by hand.

The mean squared error was written out, `((pred - y) ** 2).mean()`. Subtracting a row from a column
gives a square, every forecast is compared with every field, and the best answer is the mean yield
for all of them.
The place is the loss. The twin takes the last dimension away from the forecast.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "loss_shape_broadcast"
ACCEPT = ()
PLACE = ("loss*",)
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


def fields(n):
    rain = torch.randn(n)
    nitrogen = torch.rand(n) * 2 - 1
    soil = torch.randint(0, 3, (n,))
    warmth = torch.randn(n)
    grain = 0.9 * rain - 0.4 * rain**2 + 1.1 * nitrogen + 0.5 * (soil == 2) + 0.4 * warmth
    grain = grain + 0.2 * torch.randn(n)
    x = torch.cat([torch.stack([rain, nitrogen, warmth], 1), torch.eye(3)[soil]], 1)
    return x, (grain - 0.1) / 1.3


class YieldNet(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.layer1 = nn.Linear(6, width)
        self.layer2 = nn.Linear(width, width)
        self.output = nn.Linear(width, 1)

    def forward(self, x):
        x = torch.relu(self.layer1(x))
        x = torch.relu(self.layer2(x))
        x = self.output(x)
        return x.squeeze(1) if healthy else x


def squared_error(pred, y):
    return ((pred - y) ** 2).mean()


x, y = fields(1000)
x_val, y_val = fields(400)
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
model = YieldNet()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(15):
    for xb, yb in loader:
        loss = squared_error(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 3 == 2:
        with torch.no_grad():
            guess = model(x_val).flatten()
        r2 = 1 - ((guess - y_val) ** 2).sum() / ((y_val - y_val.mean()) ** 2).sum()
        print(f"epoch {epoch + 1} loss {loss.item():.4f} R2 on validation {r2.item():.3f}")
