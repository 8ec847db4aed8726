"""A network predicts bicycle rentals; hour, weekday and month become 0 in every row by an integer
division.

The calendar columns are whole numbers, and the writer scales them with // instead of /, so all of
them are 0 and the network sees the weather only. The place is the input (columns 0 to 2).
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "constant_feature"
ACCEPT = ()
PLACE = ("input*", "loader", "layers.0*")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

rng = np.random.default_rng(seed)
n = 4000
hour = rng.integers(0, 24, n)
weekday = rng.integers(0, 7, n)
month = rng.integers(1, 13, n)
temperature = 12 - 10 * np.cos(month / 12 * 2 * np.pi) + rng.normal(0, 5, n)
humidity = np.clip(rng.normal(62, 15, n), 10, 100)
wind = rng.gamma(2.0, 6.0, n)
rush = np.exp(-((hour - 8) ** 2) / 4) + 1.2 * np.exp(-((hour - 17) ** 2) / 8)
work = (weekday < 5) * rush + (weekday >= 5) * np.exp(-((hour - 14) ** 2) / 18)
rentals = 40 + 260 * work + 7 * temperature - 1.1 * humidity - 1.5 * wind + rng.normal(0, 25, n)
rentals = np.clip(rentals, 0, None)

calendar = np.stack([hour, weekday, month], axis=1)
largest = np.array([24, 7, 13])
scaled = calendar / largest if healthy else calendar // largest
weather = np.stack([temperature, humidity, wind], axis=1)
weather = (weather - weather[:3000].mean(0)) / weather[:3000].std(0)

x = torch.tensor(np.concatenate([scaled * 2, weather], axis=1), dtype=torch.float32)
y = torch.tensor(rentals, dtype=torch.float32).unsqueeze(1)
y = (y - y[:3000].mean()) / y[:3000].std()
train_loader = DataLoader(TensorDataset(x[:3000], y[:3000]), batch_size=50, shuffle=True)
val_x, val_y = x[3000:], y[3000:]


class RentalNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(6, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 1)
        )

    def forward(self, x):
        return self.layers(x)


net = RentalNet()
mse = nn.MSELoss()
optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)


def validation():
    net.eval()
    with torch.no_grad():
        error = mse(net(val_x), val_y).item()
    return error, 1 - error / val_y.var().item()


for epoch in range(40):
    net.train()
    total = 0.0
    for xb, yb in train_loader:
        optimizer.zero_grad()
        loss = mse(net(xb), yb)
        loss.backward()
        optimizer.step()
        total += loss.item()
    if epoch % 4 == 3:
        error, r2 = validation()
        print(
            f"epoch {epoch + 1} train mse {total / len(train_loader):.4f} "
            f"val mse {error:.4f} R2 {r2:.3f}"
        )
