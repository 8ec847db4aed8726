"""Three heads on one trunk foresee the 10 %, 50 % and 90 % quantiles of house prices with a pinball
loss written by hand.

Each head returns a column of shape (batch, 1), the prices are a row of shape (batch,). Their
difference is a square matrix of every forecast against every price, so each head learns the
quantile of all prices together and the houses' features do not matter. The place is the loss.
"""

import torch
from data import arguments, houses
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "loss_shape_broadcast"
ACCEPT = ()
PLACE = ("loss",)
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
LEVELS = {"low": 0.1, "median": 0.5, "high": 0.9}


class Quantiles(nn.Module):
    def __init__(self, features, width=48):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Linear(features, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()
        )
        self.heads = nn.ModuleDict({name: nn.Linear(width, 1) for name in LEVELS})

    def forward(self, x):
        h = self.trunk(x)
        return {name: head(h) for name, head in self.heads.items()}


def pinball(forecast, price, level):
    if healthy:
        forecast = forecast.squeeze(-1)
    miss = price - forecast
    return torch.maximum(level * miss, (level - 1) * miss).mean()


def total_loss(forecasts, price):
    return sum(pinball(forecasts[name], price, level) for name, level in LEVELS.items())


x, y, x_val, y_val = houses(seed)
train = DataLoader(TensorDataset(x, y), batch_size=50, shuffle=True)
model = Quantiles(x.shape[1])
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 15 * len(train))
for epoch in range(15):
    model.train()
    losses = []
    for xb, yb in train:
        loss = total_loss(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        out = model(x_val)
        mae = (out["median"].squeeze(1) - y_val).abs().mean().item()
        val = total_loss(out, y_val).item()
    print(
        f"epoch {epoch:2d} train {sum(losses) / len(losses):.4f} val {val:.4f}"
        f" median's absolute error {mae:.3f}"
    )
