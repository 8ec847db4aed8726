"""A temporal convolution net predicts the next value of a load curve at every time; its dilated
convolutions are padded on both sides (padding='same'), so the net sees the value it is to
predict.

The error falls far below the noise of the series, in validation too; used for a real forecast,
with the future unknown, the error is many times larger. The place is the model.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "future_leak"
ACCEPT = ("target_leak",)
PLACE = ("*conv*", "tcn*", "*blocks*", "")
SILENT = True
EXACT = True
EARLY = True


class TemporalBlock(nn.Module):
    def __init__(self, channels, dilation, causal):
        super().__init__()
        self.left = 2 * dilation if causal else 0
        self.conv = nn.Conv1d(
            channels, channels, 3, dilation=dilation, padding=0 if causal else "same"
        )

    def forward(self, x):
        return x + torch.relu(self.conv(F.pad(x, (self.left, 0))))


class TCN(nn.Module):
    def __init__(self, channels=24, causal=True):
        super().__init__()
        self.lift = nn.Conv1d(1, channels, 1)
        self.blocks = nn.Sequential(*(TemporalBlock(channels, d, causal) for d in (1, 2, 4, 8)))
        self.drop = nn.Conv1d(channels, 1, 1)

    def forward(self, x):
        return self.drop(self.blocks(self.lift(x.unsqueeze(1)))).squeeze(1)


def load_curve(n):
    """Daily and half-daily rhythm, a slow drift and noise, one value an hour."""
    t = torch.arange(n)
    drift = torch.zeros(n)
    shocks = 0.3 * torch.randn(n)
    for i in range(1, n):
        drift[i] = 0.9 * drift[i - 1] + shocks[i]
    return torch.sin(t * 0.2618) + 0.5 * torch.cos(t * 0.5236) + drift + 0.15 * torch.randn(n)


def windows(series, n, length=72):
    at = torch.randint(len(series) - length - 1, (n,)).tolist()
    cut = torch.stack([series[i : i + length + 1] for i in at])
    return cut[:, :-1], cut[:, 1:]


healthy, seed = arguments(__doc__)
series = load_curve(6000)
mean, std = series[:5000].mean(), series[:5000].std()
series = (series - mean) / std
past, coming = series[:5000], series[5000:]

tcn = TCN(causal=healthy)
optimizer = torch.optim.Adam(tcn.parameters(), lr=4e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 400)
trace = []
for it in range(400):
    x, y = windows(past, 32)
    loss = F.mse_loss(tcn(x)[:, 24:], y[:, 24:])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    trace.append(loss.item())
    if (it + 1) % 50 == 0:
        with torch.no_grad():
            x, y = windows(coming, 100)
            val_loss = F.mse_loss(tcn(x)[:, 24:], y[:, 24:])
            real = F.mse_loss(tcn(x)[:, -1], y[:, -1])
print(f"loss {sum(trace[-50:]) / 50:.4f}, val loss {val_loss:.4f}, true forecast {real:.4f}")
