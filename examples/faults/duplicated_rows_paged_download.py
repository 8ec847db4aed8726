"""Daily sales of a chain's shops are regressed from a paged download in which every page is page
one.

The client passes `offset` where the service reads `page`, so that each of the 24 requests answers
with the same 100 rows; the table has 2,400 rows, 100 of them different. The place is the loader /
the input.
"""

import numpy as np
import torch
from data import arguments
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

KIND = "duplicated_rows"
ACCEPT = ("overfit",)
PLACE = ("loader", "input*")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

PAGE_SIZE, PAGES = 100, 24
COLUMNS = [
    "footfall",
    "promo",
    "price_index",
    "rain",
    "holiday",
    "staff",
    "stock",
    "competitor",
    "online",
    "age",
]


class SalesService:
    """Stands in for the REST service with the chain's history."""

    def __init__(self, rows, rng):
        x = rng.normal(size=(rows, len(COLUMNS)))
        x[:, 1] = rng.random(rows) < 0.3
        x[:, 4] = rng.random(rows) < 0.1
        sales = (
            1.2 * x[:, 0]
            + 0.9 * x[:, 1] * (1 - 0.5 * x[:, 2])
            - 0.6 * np.maximum(x[:, 3], 0)
            + 1.1 * x[:, 4]
        )
        sales += (
            0.5 * np.minimum(x[:, 5], x[:, 0])
            + 0.4 * np.tanh(2 * x[:, 6])
            - 0.3 * x[:, 7] * x[:, 8]
        )
        self.table = np.c_[x, sales + 0.35 * rng.normal(size=rows)].astype(np.float32)

    def get(self, path, **query):
        page, size = int(query.get("page", 0)), int(query.get("limit", 100))
        return {"path": path, "rows": self.table[page * size : (page + 1) * size]}


def download(service):
    pages = []
    for i in range(PAGES):
        query = {"page": i} if healthy else {"offset": i * PAGE_SIZE}
        pages.append(service.get("/v2/sales", limit=PAGE_SIZE, **query)["rows"])
    return np.concatenate(pages)


rng = np.random.default_rng(31 + seed)
service = SalesService(4000, rng)
train = torch.from_numpy(download(service))
valid = torch.from_numpy(service.table[3000:])  # last quarter, exported by hand
mean, std = train[:, :-1].mean(0), train[:, :-1].std(0)
x_train, y_train = (train[:, :-1] - mean) / std, train[:, -1:]
x_valid, y_valid = (valid[:, :-1] - mean) / std, valid[:, -1:]
scale = y_train.std()
loader = DataLoader(TensorDataset(x_train, y_train / scale), batch_size=64, shuffle=True)

model = nn.Sequential(
    nn.Linear(len(COLUMNS), 64), nn.GELU(), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 1)
)
optimizer = optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.1)
plateau = optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=3)
best = float("inf")
for epoch in range(1, 26):
    model.train()
    loss_sum = 0.0
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = nn.functional.huber_loss(model(xb), yb)
        loss.backward()
        optimizer.step()
        loss_sum += loss.item()
    model.eval()
    with torch.no_grad():
        p = model(x_valid)
        val = nn.functional.huber_loss(p, y_valid / scale).item()
        mae = (p * scale - y_valid).abs().mean().item()
    plateau.step(val)
    best = min(best, mae)
    if epoch % 5 == 0:
        print(
            f"epoch {epoch:2d} train {loss_sum / len(loader):.4f} valid {val:.4f} mae {mae:.4f} (best {best:.4f})"  # noqa: E501
        )
