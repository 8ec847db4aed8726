"""An MLP on digits that come in ten shards, of which the first is read ten times.

The loop over the shards uses a fixed index. The training set has the right number of rows but each
of them ten times; the network learns them by heart and is poorer on others. The place is the data.
The twin reads each shard once.
"""

import torch
from data import arguments, digits
from torch import nn
from torch.utils.data import ConcatDataset, DataLoader, TensorDataset

KIND = "duplicated_rows"
ACCEPT = ("overfit",)
PLACE = ("loader", "input*")
SILENT = True
EXACT = True
EARLY = False

healthy, seed = arguments(__doc__)

x, y, x_val, y_val = digits(seed)
shards = list(zip(x.chunk(10), y.chunk(10), strict=True))


def read_shard(number):
    return TensorDataset(*shards[number])


train_set = ConcatDataset([read_shard(i if healthy else 0) for i in range(10)])
train_loader = DataLoader(train_set, batch_size=64, shuffle=True)
val_loader = DataLoader(TensorDataset(x_val, y_val), batch_size=64)
print(len(train_set), "training rows")

model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
loss_fn = nn.CrossEntropyLoss()


def run(loader, train):
    model.train(train)
    total = right = 0
    with torch.set_grad_enabled(train):
        for xb, yb in loader:
            out = model(xb)
            loss = loss_fn(out, yb)
            if train:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            total += loss.item() * len(yb)
            right += (out.argmax(1) == yb).sum().item()
    n = len(loader.dataset)
    return total / n, right / n


for epoch in range(15):
    a, b = run(train_loader, True), run(val_loader, False)
    print(f"epoch {epoch}: train {a[0]:.3f} {a[1]:.3f} val {b[0]:.3f} {b[1]:.3f}")
