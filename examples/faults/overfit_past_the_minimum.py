"""A wide MLP on the diabetes data, trained far past the minimum of its validation loss.

The number of steps was set once and the validation curve not looked at. After some ten epochs the
network begins to learn the 331 patients by heart, and the error on the others rises by a third or
more. The place is the loop. The twin stops once the validation loss has not improved for a while,
and takes the best weights.
"""

import copy

import torch
from data import arguments, diabetes
from torch import nn

KIND = "overfit"
ACCEPT = ()
PLACE = ("loop", "loader", "input*")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = diabetes(seed)

model = nn.Sequential(
    nn.Linear(10, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 1), nn.Flatten(0)
)
mse = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-4)
best, best_state, patience = float("inf"), None, 6

for epoch in range(150):
    model.train()
    for rows in torch.randperm(len(x)).split(32):
        optimizer.zero_grad()
        loss = mse(model(x[rows]), y[rows])
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        train_loss, val_loss = mse(model(x), y).item(), mse(model(x_val), y_val).item()
    print(f"epoch {epoch + 1}: train {train_loss:.3f}  val {val_loss:.3f}")
    if val_loss < best:
        best, best_state, patience = val_loss, copy.deepcopy(model.state_dict()), 6
    else:
        patience -= 1
    if healthy and patience == 0:
        model.load_state_dict(best_state)
        break

model.eval()
with torch.no_grad():
    print(f"final val {mse(model(x_val), y_val).item():.3f}, the best seen {best:.3f}")
