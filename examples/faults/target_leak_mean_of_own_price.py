"""Auction prices with a feature made by group: the mean price of the seller's other lots.

The lot's own price is in the mean, and most sellers have but one lot: the feature is nearly the
price. On new sellers, without past prices, the model fails. The twin takes the mean over the other
lots only. The place is the input.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "target_leak"
ACCEPT = ()
PLACE = ("input", "loader")
SILENT = True
EXACT = False
EARLY = False

COLUMNS = 8


def lots(n, sellers):
    x = torch.randn(n, COLUMNS)
    seller = torch.randint(0, sellers, (n,))
    reputation = torch.randn(sellers)
    y = x[:, 0] + 0.7 * x[:, 1] * x[:, 2] + 0.6 * torch.sin(2 * x[:, 3]) + 0.5 * reputation[seller]
    y = y + 0.6 * torch.randn(n)
    return x, seller, y / 1.6


def mean_price(seller, y, own):
    count = torch.zeros(int(seller.max()) + 1).index_add(0, seller, torch.ones(len(y)))
    total = torch.zeros(len(count)).index_add(0, seller, y)
    if own:
        return total[seller] / count[seller]
    return (total[seller] - y) / (count[seller] - 1).clamp(min=1)


class PriceNet(nn.Module):
    def __init__(self, n_in, width=48):
        super().__init__()
        self.enter = nn.Linear(n_in, width)
        self.deep = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.GELU())
        self.price = nn.Linear(width, 1)

    def forward(self, x):
        h = torch.nn.functional.gelu(self.enter(x))
        return self.price(h + self.deep(h)).squeeze(1)


healthy, seed = arguments(__doc__)
x, seller, y = lots(5000, 10_000)
history = mean_price(seller, y, own=not healthy)
x = torch.cat([x, history.unsqueeze(1)], 1)
new_x, _, new_y = lots(1000, 1000)
new_x = torch.cat([new_x, torch.zeros(1000, 1)], 1)

train = TensorDataset(x[:4000], y[:4000])
x_val, y_val = x[4000:], y[4000:]
model = PriceNet(COLUMNS + 1)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
mse = nn.MSELoss()
for epoch in range(7):
    model.train()
    for features, price in DataLoader(train, batch_size=64, shuffle=True):
        loss = mse(model(features), price)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        val, new = mse(model(x_val), y_val).item(), mse(model(new_x), new_y).item()
    print(f"epoch {epoch}: train {loss.item():.3f}, val {val:.3f}, new sellers {new:.3f}")
