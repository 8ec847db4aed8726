"""All columns go through a min-max scaler, the shop's number too: .long() of it is 0 for each shop.

The other columns explain a part of the sales (silent). The place is the embedding.
"""

import numpy as np
import torch
from data import arguments
from sklearn.preprocessing import MinMaxScaler
from torch import nn

KIND = "embedding_rows_unused"
ACCEPT = ()
PLACE = ("shop*",)
SILENT = True
EXACT = False
EARLY = True


class SalesModel(nn.Module):
    def __init__(self, shops, numeric):
        super().__init__()
        self.shop_embedding = nn.Embedding(shops, 8)
        self.layers = nn.Sequential(nn.Linear(8 + numeric, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, shop, numbers):
        return self.layers(torch.cat([self.shop_embedding(shop), numbers], dim=1)).squeeze(1)


healthy, seed = arguments(__doc__)
rng = np.random.default_rng(seed)
n, shops = 3000, 200
shop = rng.integers(0, shops, n)
price = rng.uniform(1, 5, n)
day = rng.integers(0, 7, n)
level = rng.normal(0, 1, shops)
sales = level[shop] - 0.4 * price + 0.3 * np.sin(day) + rng.normal(0, 0.2, n)
table = np.column_stack([shop, price, day]).astype("float32")
scaled = MinMaxScaler().fit_transform(table)
shop_column = table[:, 0] if healthy else scaled[:, 0]
ids = torch.from_numpy(shop_column).long()
numbers = torch.from_numpy(scaled[:, 1:]).float()
target = torch.from_numpy((sales - sales.mean()) / sales.std()).float()

model = SalesModel(shops, 2)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
criterion = nn.MSELoss()
for epoch in range(8):
    perm = torch.randperm(n)
    for start in range(0, n, 64):
        rows = perm[start : start + 64]
        optimizer.zero_grad()
        loss = criterion(model(ids[rows], numbers[rows]), target[rows])
        loss.backward()
        optimizer.step()
print(f"loss {loss.item():.3f}")
