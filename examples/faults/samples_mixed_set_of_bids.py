"""Final price of an auction by its bids; the attention over the bids runs over the batch instead.

Each auction has twenty bids, and a softmax says which of them matter. It runs over dim=0, which was
the bids' axis in the first version without a batch: bids of different auctions compete with one
another, and what one auction gets depends on its neighbours in the batch.
The place is the attention. The twin's softmax runs over the bids.
"""

import torch
from data import arguments
from torch import nn

KIND = "samples_mixed"
ACCEPT = ()
PLACE = ("weigh", "score*", "price", "embed*")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


class Auction(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.embed = nn.Sequential(nn.Linear(4, dim), nn.ReLU(), nn.Linear(dim, dim), nn.ReLU())
        self.weigh = nn.Linear(dim, 1)
        self.price = nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, 1))

    def forward(self, bids):
        h = self.embed(bids)
        attention = self.weigh(h).softmax(1 if healthy else 0)
        return self.price((attention * h).sum(1)).squeeze(1)


def auctions(n, g):
    """Amount, hour, the bidder's age as a customer, and whether the bid came by telephone."""
    amount = torch.randn(n, 20, generator=g) + torch.randn(n, 1, generator=g)
    hour = torch.rand(n, 20, generator=g)
    age = torch.randn(n, 20, generator=g)
    phone = (torch.rand(n, 20, generator=g) < 0.2).float()
    serious = (2.5 * amount + 2 * hour + age).softmax(1)
    price = (serious * (amount + 0.5 * phone)).sum(1)
    x = torch.stack([amount / 1.4, hour * 3.4 - 1.7, age, phone], -1)
    return x, (price - price.mean()) / price.std()


g = torch.Generator().manual_seed(seed)
x, y = auctions(2400, g)
x, x_val, y, y_val = x[:2000], x[2000:], y[:2000], y[2000:]
model = Auction()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(15):
    model.train()
    total = 0.0
    for rows in torch.randperm(len(x), generator=g).split(50):
        loss = nn.functional.mse_loss(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows) / len(x)
    model.eval()
    with torch.no_grad():
        out = torch.cat([model(part) for part in x_val.split(50)])
    if epoch % 3 == 2:
        val = nn.functional.mse_loss(out, y_val).item()
        print(f"epoch {epoch + 1}: loss {total:.4f} validation {val:.4f}")
