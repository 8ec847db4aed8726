"""An MLP that predicts machine failures from five sensor columns is trained on the raw readings.

Pressure is in pascal, speed in turns per minute and temperature in kelvin, so the first layer sees
numbers from 1 to 100,000 and the column with the largest unit decides what it computes. The loss
starts in the thousands and the accuracy stays near the base rate. The twin standardises the columns
by the training part. The place is the input or `0`.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "input_not_normalized"
ACCEPT = ()
PLACE = ("input*", "0")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)

r = np.random.default_rng(seed)
n = 3200
temperature = r.normal(300, 6, n)
speed = r.normal(1500, 180, n)
torque = r.normal(40, 10, n)
wear = r.uniform(0, 240, n)
pressure = r.normal(101_325, 900, n)
power = (torque - 40) / 10 + (speed - 1500) / 180
risk = power**2 + (wear - 120) / 35 + (temperature - 300) / 6 + 0.8 * (pressure - 101_325) / 900
failed = (risk + r.normal(0, 0.6, n) > 1.8).astype("float32")

x = np.stack([temperature, speed, torque, wear, pressure], 1).astype("float32")
x_train, y_train, x_val, y_val = x[:2400], failed[:2400], x[2400:], failed[2400:]
if healthy:
    mean, std = x_train.mean(0), x_train.std(0)
    x_train, x_val = (x_train - mean) / std, (x_val - mean) / std

train_set = TensorDataset(torch.from_numpy(x_train), torch.from_numpy(y_train))
val_x, val_y = torch.from_numpy(x_val), torch.from_numpy(y_val)
loader = DataLoader(train_set, batch_size=64, shuffle=True)

model = nn.Sequential(nn.Linear(5, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

for epoch in range(30):
    model.train()
    total = 0.0
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = criterion(model(xb).squeeze(1), yb)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(xb)
    if epoch % 3 == 2:
        model.eval()
        with torch.no_grad():
            out = model(val_x).squeeze(1)
            val_loss = criterion(out, val_y).item()
            acc = ((out > 0).float() == val_y).float().mean().item()
        print(
            f"epoch {epoch + 1}: train {total / len(train_set):.4f} "
            f"val {val_loss:.4f} acc {acc:.3f}"
        )
print(f"share of the larger class in validation: {max(y_val.mean(), 1 - y_val.mean()):.3f}")
