"""Forecasts tomorrow's power price; the smoothed price among the inputs looks three days ahead.

The price is noisy, so a moving average is added as an input, taken with numpy's "same" mode. Its
window lies in the middle: the average at day t knows the days t+1 to t+3, which are to be forecast.
The validation is computed in the same way and looks splendid. The place is the input.
The twin averages over the last seven days only.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "future_leak"
ACCEPT = ("target_leak",)
PLACE = ("input*", "loader")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
WINDOW, SPAN = 21, 7


def prices(days, rng):
    level, price = 0.0, []
    for day in range(days):
        level = 0.93 * level + rng.normal(0, 4)
        season = 8 * np.cos(2 * np.pi * day / 365) - 6 * (day % 7 >= 5)
        price.append(60 + level + season + rng.normal(0, 3))
    return np.array(price)


def trailing(price):
    padded = np.concatenate([np.full(SPAN - 1, price[0]), price])
    return np.convolve(padded, np.ones(SPAN) / SPAN, mode="valid")


def smooth(price):
    if healthy:
        return trailing(price)
    return np.convolve(price, np.ones(SPAN) / SPAN, mode="same")


def windows(price, average, mean, std):
    weekend = (np.arange(len(price)) % 7 >= 5).astype(float)
    table = np.stack([(price - mean) / std, (average - mean) / std, weekend], 1)
    x = np.stack([table[t - WINDOW : t] for t in range(WINDOW, len(price))])
    y = (price[WINDOW:] - mean) / std
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)


class PriceNet(nn.Module):
    """Dilated convolutions over the last three weeks."""

    def __init__(self, channels=24):
        super().__init__()
        self.convs = nn.Sequential(
            nn.Conv1d(3, channels, 3), nn.GELU(),
            nn.Conv1d(channels, channels, 3, dilation=2), nn.GELU(),
            nn.Conv1d(channels, channels, 3, dilation=4), nn.GELU(),
        )  # fmt: skip
        self.out = nn.Linear(channels, 1)

    def forward(self, x):
        return self.out(self.convs(x.transpose(1, 2))[:, :, -1]).squeeze(1)


price = prices(2000, np.random.default_rng(40 + seed))
mean, std = price[:1500].mean(), price[:1500].std()
x, y = windows(price, smooth(price), mean, std)
live_x, _ = windows(price, trailing(price), mean, std)
cut = 1500 - WINDOW
loader = DataLoader(TensorDataset(x[:cut], y[:cut]), batch_size=64, shuffle=True)
net = PriceNet()
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=0.02)
for epoch in range(12):
    total = 0.0
    for xb, yb in loader:
        loss = nn.functional.mse_loss(net(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / len(loader)
    if epoch % 2:
        with torch.no_grad():
            mae = (net(x[cut:]) - y[cut:]).abs().mean() * std
        print(f"epoch {epoch} train {total:.4f} validation MAE {mae:.2f} EUR/MWh")
with torch.no_grad():
    mae = (net(live_x[cut:]) - y[cut:]).abs().mean() * std
print(f"replayed as on the trading desk: MAE {mae:.2f} EUR/MWh")
