"""An MLP regressor of house prices whose weights are bfloat16.

The whole model was cast with .bfloat16() to save memory. A weight then has eight bits, and a step
of a thousandth of it or less is rounded away: the loss stops falling where the steps become small.
The place is the model's cast, and the optimizer that steps in it. The twin keeps float32 weights
and lets autocast compute in bfloat16.
"""

import torch
from data import arguments, batches, houses
from torch import nn

KIND = "low_precision_updates_lost"
ACCEPT = ()
PLACE = ("optimizer", "0.weight", "2.weight", "4.weight")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = houses(seed)
y, y_val = y.unsqueeze(1), y_val.unsqueeze(1)
dtype = torch.float32 if healthy else torch.bfloat16

model = nn.Sequential(nn.Linear(6, 64), nn.GELU(), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 1))
model.to(dtype)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
loss_fn = nn.MSELoss()


def predict(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return model(x.to(dtype))


for step, (xb, yb) in enumerate(batches(x, y, size=100, steps=1500, seed=seed), 1):
    loss = loss_fn(predict(xb).float(), yb)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        with torch.no_grad():
            val = loss_fn(predict(x_val).float(), y_val).item()
        print(f"step {step}: train {loss.item():.3f}  val {val:.3f}")
