"""Regression on the diabetes data; the loss is wrapped into a new tensor before backward().

backward() had complained once, and `torch.tensor(loss.item(), requires_grad=True)` silenced it.
The new tensor has no history, so no parameter gets a gradient. The place is the loss. The twin
calls backward() on the loss itself.
"""

import torch
from data import arguments, diabetes
from torch import nn

KIND = "detached_loss"
ACCEPT = ("step_without_gradient",)
PLACE = ("loss*", "loop")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = diabetes(seed)
y, y_val = y.unsqueeze(1), y_val.unsqueeze(1)

model = nn.Sequential(nn.Linear(10, 16), nn.Tanh(), nn.Linear(16, 1))
loss_fn = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, weight_decay=1e-3)
batch_size = 32

for epoch in range(30):
    order = torch.randperm(len(x))
    epoch_loss = 0.0
    for i in range(0, len(x), batch_size):
        rows = order[i : i + batch_size]
        pred = model(x[rows])
        loss = loss_fn(pred, y[rows])
        if not healthy:
            loss = torch.tensor(loss.item(), requires_grad=True)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        epoch_loss += loss.item() * len(rows)
    with torch.no_grad():
        val = loss_fn(model(x_val), y_val).item()
    if epoch % 3 == 2:
        r2 = 1 - val / y_val.var().item()
        print(f"epoch {epoch + 1}: train {epoch_loss / len(x):.3f}  val {val:.3f}  R2 {r2:.3f}")
