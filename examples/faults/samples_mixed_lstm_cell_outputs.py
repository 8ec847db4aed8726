"""A parking forecast views stacked LSTM cell outputs as batch first though time comes first.

The person looped over the hours with nn.LSTMCell, joined the list with `torch.stack`, which puts
the hours in front, and brought it to (batch, hours, hidden) by `view`, as the head wanted it. The
hours of one garage get the states of other garages. The place is the forward of the model.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "samples_mixed"
ACCEPT = ()
PLACE = ("model", "cell", "head", "head.*")
SILENT = False
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

HOURS = 24


def garages(n):
    """Arrivals, rain and price hour by hour; how full the garage is after each hour."""
    rng = np.random.default_rng(340 + seed)
    hour = np.arange(HOURS)
    peak = rng.uniform(7, 15, (n, 1))
    arrivals = 1.5 * np.exp(-((hour - peak) ** 2) / 8) + 0.2 * rng.normal(size=(n, HOURS))
    rain = (rng.random((n, HOURS)) < 0.25).astype(float)
    price = np.repeat(rng.uniform(0, 1, (n, 1)), HOURS, 1)
    full = np.zeros((n, HOURS))
    level = rng.uniform(0, 0.2, n)
    for t in range(HOURS):
        level = 0.8 * level + arrivals[:, t] * (1 - 0.5 * price[:, t]) + 0.4 * rain[:, t]
        full[:, t] = level + 0.08 * rng.normal(size=n)
    return np.stack([arrivals, rain, price], -1), full


class ParkingLSTM(nn.Module):
    def __init__(self, n_features=3, hidden=32):
        super().__init__()
        self.hidden = hidden
        self.cell = nn.LSTMCell(n_features, hidden)
        self.head = nn.Sequential(nn.Linear(hidden, 24), nn.ReLU(), nn.Linear(24, 1))

    def forward(self, x):
        batch, hours, _ = x.shape
        h = x.new_zeros(batch, self.hidden)
        c = x.new_zeros(batch, self.hidden)
        outputs = []
        for t in range(hours):
            h, c = self.cell(x[:, t], (h, c))
            outputs.append(h)
        if healthy:
            outputs = torch.stack(outputs, dim=1)
        else:
            outputs = torch.stack(outputs).view(batch, hours, self.hidden)
        return self.head(outputs).squeeze(-1)


x, y = garages(1200)
cut = 960
mean, std = x[:cut].mean((0, 1)), x[:cut].std((0, 1))
x = torch.tensor((x - mean) / std, dtype=torch.float32)
y = torch.tensor((y - y[:cut].mean()) / y[:cut].std(), dtype=torch.float32)
loader = DataLoader(TensorDataset(x[:cut], y[:cut]), batch_size=32, shuffle=True)
x_val, y_val = x[cut:], y[cut:]
model = ParkingLSTM()
loss_fn = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=4, gamma=0.5)

for epoch in range(9):
    model.train()
    total = 0.0
    for features, target in loader:
        prediction = model(features)
        loss = loss_fn(prediction, target)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total += loss.item() * len(features)
    scheduler.step()
    model.eval()
    with torch.no_grad():
        prediction = model(x_val)
        val_loss = loss_fn(prediction, y_val).item()
        one = torch.cat([model(garage[None]) for garage in x_val[:60]])
        alone = loss_fn(one, y_val[:60]).item()
    print(
        f"epoch {epoch + 1:2d}  train {total / cut:.4f}  val {val_loss:.4f}"
        f"  r2 {1 - val_loss / y_val.var().item():.3f}  one garage at a time {alone:.4f}"
    )
