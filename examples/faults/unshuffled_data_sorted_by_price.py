"""A house price regressor goes through a table that is sorted by price from top to bottom.

The export is ordered by price and the loop takes slices of it as they are, so every epoch starts
with the cheapest houses and ends with the dearest; the net follows the slice it has just seen and
is far too high in validation. The twin draws a new order in each epoch. The place is the loader,
the loop, the labels or the input.
"""

import torch
from data import arguments, houses
from torch import nn

KIND = "unshuffled_data"
ACCEPT = ()
PLACE = ("loader", "loop", "label*", "classes*", "input*")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
BATCH = 32
x, y, x_val, y_val = houses(seed)
by_price = y.argsort()
x, y = x[by_price], y[by_price]


class PriceNet(nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.hidden1 = nn.Linear(columns, 64)
        self.hidden2 = nn.Linear(64, 32)
        self.price = nn.Linear(32, 1)

    def forward(self, x):
        x = torch.relu(self.hidden1(x))
        x = torch.relu(self.hidden2(x))
        return self.price(x).squeeze(1)


def train_epoch(model, optimizer):
    model.train()
    order = torch.randperm(len(x)) if healthy else torch.arange(len(x))
    total = 0.0
    for start in range(0, len(x), BATCH):
        rows = order[start : start + BATCH]
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x[rows]), y[rows])
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows)
    return total / len(x)


def validate(model):
    model.eval()
    with torch.no_grad():
        out = model(x_val)
    return nn.functional.mse_loss(out, y_val).item(), (out - y_val).mean().item()


model = PriceNet(x.shape[1])
optimizer = torch.optim.SGD(model.parameters(), lr=0.005, momentum=0.9, weight_decay=1e-3)
for epoch in range(16):
    train_loss = train_epoch(model, optimizer)
    val_loss, bias = validate(model)
    if epoch % 4 == 3:
        print(
            f"epoch {epoch + 1} train mse {train_loss:.4f} "
            f"val mse {val_loss:.4f} mean error {bias:+.3f}"
        )
