"""A regression of house prices in which a handful of rows are in another unit.

Six of 1,500 rows were read with a misplaced decimal point, so that their columns and price are
some hundred times too large. A batch with such a row has a monstrous loss and throws the weights
far off. The place is the data. The twin drops rows beyond eight standard deviations.
"""

import torch
from data import arguments, houses
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "loss_spike"
ACCEPT = ("exploding_gradient",)
PLACE = ("loader", "input*", "label*", "loop")
SILENT = False
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = houses(seed)
broken = torch.randperm(len(x))[:6]
x[broken] *= 100
y[broken] = 300 * y[broken].abs() + 100
if healthy:
    good = (x.abs().amax(1) < 8) & (y.abs() < 8)
    x, y = x[good], y[good]
loader = DataLoader(TensorDataset(x, y.unsqueeze(1)), batch_size=32, shuffle=True)

model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))
mse = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
step = 0
for epoch in range(14):
    model.train()
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = mse(model(xb), yb)
        loss.backward()
        optimizer.step()
        if step % 25 == 0 or loss.item() > 50:
            print(f"  step {step}: loss {loss.item():.3f}")
        step += 1
    model.eval()
    with torch.no_grad():
        print(f"epoch {epoch + 1}: val {mse(model(x_val), y_val.unsqueeze(1)).item():.3f}")
