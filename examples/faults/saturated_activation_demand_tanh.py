"""A tanh network regresses the demand for hire bicycles; its weights start so large that nearly
all units are at -1 or 1.

The hidden layers are initialised by normal_ with its default spread of 1 instead of Xavier's:
with 128 inputs to a unit the sums are around 10, tanh is flat there, and little can be learned.
The place is hidden1, hidden2 and hidden3.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "saturated_activation"
ACCEPT = ("poor_weight_init",)
PLACE = ("hidden1*", "hidden2*", "hidden3*", "act*")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

r = np.random.default_rng(84 + seed)
n = 4000
hour = r.integers(0, 24, n)
workday = r.random(n) < 5 / 7
temp = r.normal(14, 8, n)
humid = np.clip(r.normal(65, 18, n), 5, 100)
wind = r.gamma(2.0, 6.0, n)
rain = r.exponential(0.4, n) * (r.random(n) < 0.25)
rush = np.exp(-((hour - 8) ** 2) / 4) + 1.2 * np.exp(-((hour - 17) ** 2) / 5)
leisure = np.exp(-((hour - 14) ** 2) / 18)
level = np.where(workday, rush + 0.3 * leisure, 1.1 * leisure)
bikes = 220 * level * (0.4 + 1 / (1 + np.exp(-(temp - 12) / 5))) * np.exp(-0.6 * rain)
bikes = np.sqrt(np.clip(bikes - 0.3 * humid - 0.8 * wind + 60 + r.normal(0, 20, n), 0, None))
x = np.column_stack(
    [
        np.sin(hour / 3.82),
        np.cos(hour / 3.82),
        np.sin(hour / 1.91),
        np.cos(hour / 1.91),
        workday,
        temp,
        humid,
        wind,
        rain,
    ]
)
cut = 3200
x = (x - x[:cut].mean(0)) / x[:cut].std(0)
bikes = (bikes - bikes[:cut].mean()) / bikes[:cut].std()
x, y = torch.tensor(x, dtype=torch.float32), torch.tensor(bikes, dtype=torch.float32)
train_loader = DataLoader(TensorDataset(x[:cut], y[:cut]), batch_size=64, shuffle=True)
x_val, y_val = x[cut:], y[cut:]


class BikeNet(nn.Module):
    def __init__(self, inputs, width=128):
        super().__init__()
        self.hidden1, self.act1 = nn.Linear(inputs, width), nn.Tanh()
        self.hidden2, self.act2 = nn.Linear(width, width), nn.Tanh()
        self.hidden3, self.act3 = nn.Linear(width, width), nn.Tanh()
        self.out = nn.Linear(width, 1)
        for layer in (self.hidden1, self.hidden2, self.hidden3):
            (nn.init.xavier_normal_ if healthy else nn.init.normal_)(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(self, x):
        x = self.act1(self.hidden1(x))
        x = self.act2(self.hidden2(x))
        x = self.act3(self.hidden3(x))
        return self.out(x).squeeze(1)


model = BikeNet(x.shape[1])
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 6, gamma=0.3)
for epoch in range(14):
    model.train()
    losses = []
    for xb, yb in train_loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(xb), yb)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    scheduler.step()
    model.eval()
    with torch.no_grad():
        val = nn.functional.mse_loss(model(x_val), y_val).item()
    print(
        f"epoch {epoch:2d} train {np.mean(losses):.4f} val {val:.4f} R2 {1 - val / y_val.var():.3f}"
    )
