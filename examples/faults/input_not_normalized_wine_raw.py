"""An MLP on the wine table; the measurements go in as they are in the file.

Proline is in the hundreds, hue near one. The large column fills the first layer and the loss stays
near that of guessing. The place is the data: the table is never scaled. The twin standardises the
columns by the training part.
"""

import torch
from data import arguments, standardise, wine
from torch import nn

KIND = "input_not_normalized"
ACCEPT = ()
PLACE = ("input*", "loader")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)

x_train, y_train, x_test, y_test = wine(seed, raw=True)
if healthy:
    x_train, x_test = standardise(x_train, x_test)

model = nn.Sequential(nn.Linear(13, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 3))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

for epoch in range(40):
    model.train()
    order = torch.randperm(len(x_train))
    total = 0.0
    for i in range(0, len(order), 16):
        rows = order[i : i + 16]
        optimizer.zero_grad()
        loss = criterion(model(x_train[rows]), y_train[rows])
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows)
    if epoch % 5 == 4:
        model.eval()
        with torch.no_grad():
            accuracy = (model(x_test).argmax(1) == y_test).float().mean().item()
        print(f"epoch {epoch + 1}: loss {total / len(order):.3f}, test accuracy {accuracy:.3f}")
