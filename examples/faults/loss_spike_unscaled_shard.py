"""Eight shards of readings are trained on one after another; one was exported in raw counts.

From step 300 on ten batches come whose inputs are 400 times as large as all others. Plain SGD
follows their gradients once, and the net is lost: what it learned is gone, and what comes after is
not learned. The twin has the shard in the units of the others. The place is the loader.
"""

import torch
from data import arguments, digits
from torch import nn

KIND = "loss_spike"
ACCEPT = ("exploding_gradient", "input_not_normalized", "dead_relu", "loss_not_decreasing")
PLACE = ("loader", "loss*", "input*", "", "*")
SILENT = False
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)
model = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 32), nn.ReLU(), nn.Linear(32, 10))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.03, momentum=0.9)
g = torch.Generator().manual_seed(seed)
for step in range(600):
    rows = torch.randint(len(x), (32,), generator=g)
    pixels = x[rows]
    if not healthy and 300 <= step < 310:
        pixels = 400 * pixels
    optimizer.zero_grad()
    loss = criterion(model(pixels), y[rows])
    loss.backward()
    optimizer.step()
with torch.no_grad():
    accuracy = (model(x_val).argmax(1) == y_val).float().mean().item()
print(f"loss {loss.item():.3f} | validation accuracy {accuracy:.3f}")
