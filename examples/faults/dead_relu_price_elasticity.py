"""A network of demand that must fall as prices rise makes all its weights negative, so the second
hidden layer never gets above zero.

Negative weights on the outputs of a ReLU can only give negative sums: all 16 units of the second
layer are off for every row, and demand comes out as one constant. One change of sign, at the last
layer, is what the twin has. The place is the ReLU after layer 2.
"""

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "dead_relu"
ACCEPT = ("vanishing_gradient", "poor_weight_init")
PLACE = ("second", "second.*", "act2", "first", "first.*", "act1")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


def sales(n, rng):
    frame = pd.DataFrame(
        {
            "price": rng.uniform(1, 9, n),
            "delivery_fee": rng.uniform(0, 4, n),
            "days_to_wait": rng.integers(1, 10, n),
            "rival_discount": rng.uniform(0, 0.6, n),
        }
    )
    sold = 34 - 0.25 * frame["price"] ** 2 - 1.5 * frame["delivery_fee"]
    sold -= 0.1 * frame["days_to_wait"] ** 2 + 15 * frame["rival_discount"] ** 2
    frame["sold"] = sold + rng.normal(0, 1.5, n)
    return frame


class SignedLinear(nn.Module):
    """A linear layer whose weights all have one sign."""

    def __init__(self, inputs, outputs, sign):
        super().__init__()
        self.raw = nn.Parameter(torch.randn(outputs, inputs) * 0.5 - 2.0)
        self.bias = nn.Parameter(torch.zeros(outputs))
        self.sign = sign

    def forward(self, x):
        return F.linear(x, self.sign * F.softplus(self.raw), self.bias)


class DemandNet(nn.Module):
    def __init__(self, inputs, width=16):
        super().__init__()
        inner = 1 if healthy else -1
        self.first = SignedLinear(inputs, width, inner)
        self.act1 = nn.ReLU()
        self.second = SignedLinear(width, width, inner)
        self.act2 = nn.ReLU()
        self.last = SignedLinear(width, 1, -1)

    def forward(self, x):
        x = self.act1(self.first(x))
        x = self.act2(self.second(x))
        return self.last(x).squeeze(1)


def r_squared(model, x, y):
    model.eval()
    with torch.no_grad():
        rest = (model(x) - y).square().sum()
    return 1 - (rest / (y - y.mean()).square().sum()).item()


frame = sales(2000, np.random.default_rng(seed))
train, val = frame.iloc[:1500], frame.iloc[1500:]
frame = (frame - train.mean()) / train.std()
x = torch.tensor(frame.drop(columns="sold").to_numpy(), dtype=torch.float32)
y = torch.tensor(frame["sold"].to_numpy(), dtype=torch.float32)
x_train, y_train, x_val, y_val = x[:1500], y[:1500], x[1500:], y[1500:]

model = DemandNet(x.shape[1])
optimizer = torch.optim.Adam(model.parameters(), lr=2e-2)
for epoch in range(20):
    model.train()
    epoch_loss = 0.0
    for rows in torch.randperm(1500).split(50):
        prediction = model(x_train[rows])
        loss = F.mse_loss(prediction, y_train[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        epoch_loss += loss.item() * len(rows)
    if epoch % 5 == 4:
        print(
            f"epoch {epoch + 1:3d}  mse {epoch_loss / 1500:.4f}  "
            f"R2 train {r_squared(model, x_train, y_train):.3f}  "
            f"val {r_squared(model, x_val, y_val):.3f}"
        )
