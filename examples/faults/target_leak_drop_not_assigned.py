"""House prices by an MLP with a column dictionary; the dropped price column never left the table.

`without(table, "price")` returns a new table, the script goes on with the old one (as with pandas'
`df.drop(...)` without `inplace`). The net copies the column: an error of a few dollars, for
training and validation alike, and useless for a house whose price is not known.
"""

import numpy as np
import torch
from data import HOUSE_COLUMNS, arguments, houses
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "target_leak"
ACCEPT = ()
PLACE = ("", "loader", "0")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
rows, price, rows_val, price_val = houses(seed, raw=True, raw_target=True)
table = {c: torch.cat([rows[:, i], rows_val[:, i]]) for i, c in enumerate(HOUSE_COLUMNS)}
table["price"] = torch.cat([price, price_val])
table["rooms_per_1000_people"] = 1000 * table["rooms"] / table["people"]


def without(table, *columns):
    return {name: values for name, values in table.items() if name not in columns}


def z(values, known):
    return (values - values[:known].mean()) / values[:known].std()


known = len(price)
target = z(table["price"], known)
if healthy:
    table = without(table, "price")
else:
    without(table, "price")
matrix = torch.stack([z(values, known) for values in table.values()], 1)

train = TensorDataset(matrix[:known], target[:known])
loader = DataLoader(train, batch_size=50, shuffle=True)
regressor = nn.Sequential(
    nn.Linear(matrix.shape[1], 32),
    nn.Tanh(),
    nn.Linear(32, 16),
    nn.Tanh(),
    nn.Linear(16, 1),
    nn.Flatten(0),
)
optimizer = torch.optim.Adam(regressor.parameters(), lr=5e-3)
plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.3, patience=2)
best = np.inf
for epoch in range(20):
    regressor.train()
    for columns, y in loader:
        loss = nn.functional.mse_loss(regressor(columns), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    regressor.eval()
    with torch.no_grad():
        val = nn.functional.mse_loss(regressor(matrix[known:]), target[known:]).item()
    plateau.step(val)
    best = min(best, val)
print(
    f"loss {loss.item():.4f}, val {val:.4f}, best {best:.4f}, "
    f"R2 {1 - val / target[known:].var():.3f}"
)
