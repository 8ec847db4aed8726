"""A convolutional net reads candles (returns and the traded volume) and says the next day's range.

The volume goes in as a number of shares, in the hundred thousands, beside returns of a few per
cent. The twin takes all columns standardised. The place is the input.
"""

import torch
from data import arguments
from torch import nn

KIND = "input_not_normalized"
ACCEPT = ()
PLACE = ("input", "loader", "conv.0", "conv.0.weight")
SILENT = False
EXACT = False
EARLY = True


def market(n, days=24):
    """Windows (n, 4 columns, days) of returns and volume; the next day's logarithmic range."""
    calm = torch.randn(n, 1)
    drift = torch.cumsum(0.25 * torch.randn(n, days), 1)
    level = calm + drift
    size = 0.015 * torch.exp(0.5 * level)
    change = size * torch.randn(n, days)
    high = change.abs() + size * torch.rand(n, days)
    low = -(change.abs() + size * torch.rand(n, days))
    volume = 400_000 * torch.exp(0.4 * torch.randn(n, days) + 0.3 * level)
    after = level[:, -1] + 0.3 * torch.randn(n)
    return torch.stack([change, high, low, volume], 1), (after - after.mean()) / after.std()


class RangeForecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv1d(4, 16, 3), nn.ReLU(), nn.Conv1d(16, 16, 3, dilation=2), nn.ReLU()
        )
        self.last = nn.Linear(16 * 18, 1)

    def forward(self, window):
        return self.last(self.conv(window).flatten(1)).squeeze(1)


healthy, seed = arguments(__doc__)
x, y = market(3000)
columns = slice(0, 4) if healthy else slice(0, 3)
mean = x[:2400, columns].mean((0, 2), keepdim=True)
std = x[:2400, columns].std((0, 2), keepdim=True)
x[:, columns] = (x[:, columns] - mean) / std
x, x_val, y, y_val = x[:2400], x[2400:], y[:2400], y[2400:]

model = RangeForecaster()
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(8):
    model.train()
    for rows in torch.randperm(2400).split(60):
        optimizer.zero_grad()
        loss = criterion(model(x[rows]), y[rows])
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        val = criterion(model(x_val), y_val).item()
    print(f"epoch {epoch}: loss {loss.item():.3f}, val {val:.3f}")
