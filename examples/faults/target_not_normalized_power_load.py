"""An LSTM that forecasts the next hour's power load is given its target in megawatts.

The windows are cut from the scaled series but the target from the raw one, so the net has to put
out numbers around 35,000. The loss starts above a billion and falls only as fast as the output's
bias creeps upwards; R2 stays far below zero. The twin takes the target from the scaled series as
well. The place is the labels, the loss or `fc`.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "target_not_normalized"
ACCEPT = ()
PLACE = ("label*", "classes*", "loss*", "fc")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
WINDOW = 24


class LoadForecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(1, 32, batch_first=True)
        self.fc = nn.Linear(32, 1)

    def forward(self, x):
        out, _ = self.lstm(x)
        return self.fc(out[:, -1])


r = np.random.default_rng(seed)
hours = np.arange(2400)
load = 35_000 + 6_000 * np.sin(hours / 24 * 2 * np.pi) + 2_500 * np.sin(hours / 12 * 2 * np.pi + 1)
load = load + 1_500 * np.sin(hours / 168 * 2 * np.pi) + r.normal(0, 700, len(hours))
cut = 1900
scaled = (load - load[:cut].mean()) / load[:cut].std()
target = scaled if healthy else load


def windows(start, stop):
    x = np.stack([scaled[i : i + WINDOW] for i in range(start, stop - WINDOW)])
    y = np.stack([target[i + WINDOW] for i in range(start, stop - WINDOW)])
    return torch.tensor(x, dtype=torch.float32).unsqueeze(-1), torch.tensor(
        y, dtype=torch.float32
    ).unsqueeze(-1)


x_train, y_train = windows(0, cut)
x_val, y_val = windows(cut, len(load))
loader = DataLoader(TensorDataset(x_train, y_train), batch_size=64, shuffle=True)
model = LoadForecaster()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
mse = nn.MSELoss()
for epoch in range(1, 26):
    model.train()
    total = 0.0
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = mse(model(xb), yb)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(xb)
    if epoch % 5 == 0:
        model.eval()
        with torch.no_grad():
            val = mse(model(x_val), y_val).item()
        r2 = 1 - val / y_val.var().item()
        print(
            f"epoch {epoch}: train loss {total / len(x_train):.4g} val loss {val:.4g} R2 {r2:.3f}"
        )
