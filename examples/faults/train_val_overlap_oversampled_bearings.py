"""Failing bearings among sound ones; the rare class is multiplied before the table is divided.

There are few failures, so each is repeated ten times. This is done first and the split after it:
copies of one failure lie in both parts. The network knows them by heart and the validation says
that it finds nearly all; among bearings that are truly new it finds far fewer.
The place is the validation / how the data were split.
The twin divides first and then multiplies in the training part.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

KIND = "train_val_overlap"
ACCEPT = ("duplicated_rows",)
PLACE = ("loop", "loader", "input*")
SILENT = True
EXACT = True
EARLY = True


def bearings(n, g):
    """Twenty measures of vibration; failures are shifted a little in four of them."""
    failing = torch.rand(n, generator=g) < 0.06
    x = torch.randn(n, 20, generator=g)
    x[:, :4] += 0.9 * failing[:, None]
    return x, failing.long()


def oversample(x, y, times=10):
    again = torch.where(y == 1, times, 1)
    return x.repeat_interleave(again, 0), y.repeat_interleave(again)


def unpack(subset):
    x, y = zip(*subset, strict=False)
    return torch.stack(x), torch.stack(y)


def prepare(x, y):
    if healthy:
        train, val = random_split(TensorDataset(x, y), [0.7, 0.3])
        return TensorDataset(*oversample(*unpack(train))), val
    return random_split(TensorDataset(*oversample(x, y)), [0.7, 0.3])


def recall_and_precision(model, x, y):
    with torch.no_grad():
        found = model(x).argmax(1)
    hits = ((found == 1) & (y == 1)).sum().item()
    return hits / max(1, (y == 1).sum().item()), hits / max(1, (found == 1).sum().item())


healthy, seed = arguments(__doc__)
g = torch.Generator().manual_seed(seed)
train, val = prepare(*bearings(2500, g))
new_x, new_y = bearings(3000, g)
val_x, val_y = unpack(val)
model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
for epoch in range(12):
    for x, y in DataLoader(train, batch_size=64, shuffle=True):
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 3 == 2:
        with torch.no_grad():
            val_loss = nn.functional.cross_entropy(model(val_x), val_y).item()
        recall, precision = recall_and_precision(model, val_x, val_y)
        print(
            f"epoch {epoch + 1}: loss {loss.item():.3f} val {val_loss:.3f} "
            f"recall {recall:.3f} precision {precision:.3f}"
        )
recall, precision = recall_and_precision(model, new_x, new_y)
print(f"new bearings: recall {recall:.3f} precision {precision:.3f}")
