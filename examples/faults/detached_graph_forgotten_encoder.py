"""House prices from numbers and a district; forward() was rewritten for a test with numbers alone,
and the district's encoder is called no more.

The rest learns (silent). The place is the encoder. Exact: nothing calls it, and the optimizer holds
it.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "detached_graph"
ACCEPT = ("embedding_rows_unused",)
PLACE = ("district*",)
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
DISTRICTS = 40
rows, features = 1600, 8
x = torch.randn(rows, features)
district = torch.randint(DISTRICTS, (rows,))
level = torch.randn(DISTRICTS)
price = torch.tanh(x @ torch.randn(features, 3)).sum(1) + level[district]
price = (price - price.mean()) / price.std() + 0.1 * torch.randn(rows)


class Prices(nn.Module):
    def __init__(self):
        super().__init__()
        self.numbers = nn.Sequential(nn.Linear(features, 48), nn.ReLU())
        self.district = nn.Sequential(nn.Embedding(DISTRICTS, 16), nn.Linear(16, 48))
        self.head = nn.Sequential(nn.Linear(48, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, x, district):
        h = self.numbers(x)
        if healthy:
            h = h + self.district(district)
        return self.head(h).squeeze(1)


model = Prices()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(10):
    model.train()
    for part in torch.randperm(1200).split(40):
        optimizer.zero_grad()
        loss = F.mse_loss(model(x[part], district[part]), price[part])
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        val = F.mse_loss(model(x[1200:], district[1200:]), price[1200:])
print(f"loss {loss.item():.3f}, validation loss {val.item():.3f} (variance 1)")
