"""A wide network that learns a noisy target of twenty columns from 80 rows by heart.

Three columns matter. The training error goes to nothing, the validation error has its best value
in the first epochs and rises from there. The healthy twin has 6,000 rows. The place is the loop.
"""

import torch
from data import arguments
from torch import nn

KIND = "overfit"
ACCEPT = ()
PLACE = ("", "loop")
SILENT = True
EXACT = False
EARLY = False


def make_rows(n):
    x = torch.randn(n, 20)
    y = torch.sin(x[:, 0]) + 0.5 * x[:, 1] * x[:, 2].sign() + 0.6 * torch.randn(n)
    return x, y.unsqueeze(1)


healthy, seed = arguments(__doc__)
x_val, y_val = make_rows(500)
x_train, y_train = make_rows(6000 if healthy else 80)
model = nn.Sequential(nn.Linear(20, 200), nn.ReLU(), nn.Linear(200, 1))
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
history = []
for step in range(600):
    rows = torch.randperm(len(x_train))[:40]
    optimizer.zero_grad()
    loss = criterion(model(x_train[rows]), y_train[rows])
    loss.backward()
    optimizer.step()
    if step % 20 == 19:
        with torch.no_grad():
            history.append(criterion(model(x_val), y_val).item())
print(f"loss {loss.item():.3f}, validation {history[-1]:.3f}, at best {min(history):.3f}")
