"""Forecasts each hour's sales of a bakery from the hours before; the GRU reads from both sides.

At every hour of a day the model foretells the next one. For a better score the GRU was made
bidirectional, and its backward half hands over the very hour that is asked for. Training and
validation agree wonderfully; at the counter, where the next hour is not there yet, it fails.
The place is the GRU. The twin's GRU reads forwards only, with the same number of units.
"""

import math

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "future_leak"
ACCEPT = ("target_leak",)
PLACE = ("gru", "input*")
SILENT = True
EXACT = True
EARLY = True


class HourlySales(nn.Module):
    def __init__(self, hidden, bidirectional):
        super().__init__()
        hidden = hidden // 2 if bidirectional else hidden
        self.gru = nn.GRU(2, hidden, batch_first=True, bidirectional=bidirectional)
        self.head = nn.Linear(hidden * (2 if bidirectional else 1), 1)

    def forward(self, x):
        return self.head(self.gru(x)[0]).squeeze(-1)


def days(n, g):
    """Sales of 18 hours of a day, which swing around a curve, and the hour."""
    hour = torch.arange(18) / 18
    level = torch.zeros(n)
    shock = torch.randn(n, 18, generator=g)
    rows = []
    for t in range(18):
        level = 0.8 * level + 0.6 * shock[:, t]
        rows.append(level + math.sin(2 * math.pi * t / 18))
    sales = torch.stack(rows, 1)
    return torch.stack([sales, hour.expand(n, 18)], -1)


def main():
    healthy, seed = arguments(__doc__)
    g = torch.Generator().manual_seed(seed)
    train, val = days(1200, g), days(300, g)
    loader = DataLoader(TensorDataset(train), batch_size=32, shuffle=True, generator=g)
    model = HourlySales(32, bidirectional=not healthy)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    mse = nn.MSELoss()
    for epoch in range(8):
        losses = []
        for (x,) in loader:
            loss = mse(model(x[:, :-1]), x[:, 1:, 0])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        with torch.no_grad():
            val_loss = mse(model(val[:, :-1]), val[:, 1:, 0]).item()
        print(f"epoch {epoch}: train {sum(losses) / len(losses):.3f} val {val_loss:.3f}")
    with torch.no_grad():
        live = [mse(model(val[:, :t])[:, -1], val[:, t, 0]).item() for t in range(4, 18)]
    print(f"at the counter, hour by hour: {sum(live) / len(live):.3f}")


if __name__ == "__main__":
    main()
