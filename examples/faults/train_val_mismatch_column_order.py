"""House prices by an MLP; the validation table has its columns in another order.

The second file was written with the columns sorted by name, and the script takes them by position.
Each column is scaled with the numbers of another one: the training goes well and the validation is
absurd. The place is the data (the validation part). The twin takes the columns by name.
"""

import torch
from data import HOUSE_COLUMNS, arguments, houses
from torch import nn

KIND = "train_val_mismatch"
ACCEPT = ()
PLACE = ("loader", "input*")
SILENT = False
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)

x, y, x_val, y_val = houses(seed, raw=True)
train_file = {name: x[:, i] for i, name in enumerate(HOUSE_COLUMNS)}
val_file = {name: x_val[:, HOUSE_COLUMNS.index(name)] for name in sorted(HOUSE_COLUMNS)}

train_table = torch.stack(list(train_file.values()), 1)
if healthy:
    val_table = torch.stack([val_file[name] for name in train_file], 1)
else:
    val_table = torch.stack(list(val_file.values()), 1)


class Scaler:
    def fit(self, table):
        self.mean, self.std = table.mean(0), table.std(0)
        return self

    def transform(self, table):
        return (table - self.mean) / self.std


scaler = Scaler().fit(train_table)
x, x_val = scaler.transform(train_table), scaler.transform(val_table)

model = nn.Sequential(
    nn.Linear(6, 40), nn.LeakyReLU(), nn.Linear(40, 40), nn.LeakyReLU(), nn.Linear(40, 1)
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
loss_fn = nn.MSELoss()

iteration = 0
for epoch in range(20):
    for rows in torch.randperm(len(x)).split(64):
        model.train()
        loss = loss_fn(model(x[rows]).view(-1), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        iteration += 1
        if iteration % 40 == 0:
            model.eval()
            with torch.no_grad():
                val_loss = loss_fn(model(x_val).view(-1), y_val)
            print(f"iteration {iteration}: train {loss.item():.3f} val {val_loss.item():.3f}")
