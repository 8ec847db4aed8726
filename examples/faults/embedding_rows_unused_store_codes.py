"""An embedding model forecasts daily sales per article; nearly every article falls on the
"unknown" row.

The index of the article codes was built with the codes as they stand in the catalogue ("00417"),
while the sales table has lost the leading zeros ("417"); whatever isn't found gets row 0. Of 600
rows of the table a handful is ever trained. The place is the embedding of the articles
("article").
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "embedding_rows_unused"
ACCEPT = ()
PLACE = ("article*", "input*", "loader")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

ARTICLES, WEEKDAYS, ROWS = 600, 7, 16000
r = np.random.default_rng(31 + seed)
number = np.sort(r.choice(np.arange(100, 9990), ARTICLES, replace=False))
number[-4:] = [10012, 10431, 11007, 12950]
catalogue = [f"{c:05d}" for c in number]
level = r.normal(3.0, 0.8, ARTICLES)
sensitivity = r.normal(1.0, 0.6, ARTICLES)
week = np.array([0.0, -0.1, -0.05, 0.1, 0.4, 0.6, -0.5])

which = r.integers(0, ARTICLES, ROWS)
day = r.integers(0, WEEKDAYS, ROWS)
discount = r.choice([0.0, 0.1, 0.2, 0.4], ROWS, p=[0.6, 0.2, 0.1, 0.1])
temperature = r.normal(0, 1, ROWS)
log_sales = (
    level[which]
    + week[day]
    + 2 * sensitivity[which] * discount
    + 0.1 * temperature
    + r.normal(0, 0.25, ROWS)
)
sales_code = [catalogue[i] if healthy else str(number[i]) for i in which]

row_of = {code: row for row, code in enumerate(catalogue, start=1)}
article = torch.tensor([row_of.get(code, 0) for code in sales_code])
weekday = torch.tensor(day)
numeric = torch.tensor(np.stack([discount / 0.13 - 0.7, temperature], 1), dtype=torch.float32)
y = torch.tensor(log_sales, dtype=torch.float32)
cut = 12800
y = (y - y[:cut].mean()) / y[:cut].std()


class SalesModel(nn.Module):
    def __init__(self, articles, dim=8):
        super().__init__()
        self.article = nn.Embedding(articles + 1, dim)
        self.weekday = nn.Embedding(WEEKDAYS, 4)
        nn.init.normal_(self.article.weight, std=0.1)
        self.body = nn.Sequential(
            nn.Linear(dim + 4 + 2, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1)
        )

    def forward(self, article, weekday, numeric):
        features = torch.cat([self.article(article), self.weekday(weekday), numeric], 1)
        return self.body(features).squeeze(1)


columns = (article, weekday, numeric, y)
loader = DataLoader(TensorDataset(*(c[:cut] for c in columns)), batch_size=64, shuffle=True)
val = tuple(c[cut:] for c in columns)
model = SalesModel(ARTICLES)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

for epoch in range(6):
    model.train()
    total = 0.0
    for a, w, f, target in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(a, w, f), target)
        loss.backward()
        optimizer.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        val_mse = nn.functional.mse_loss(model(*val[:3]), val[3]).item()
    print(f"epoch {epoch} train mse {total / len(loader):.4f} val mse {val_mse:.4f}")
