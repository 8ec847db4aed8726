"""A residual MLP forecasts how late deliveries are; the validation rows are among those of the
training.

Three in ten rows were drawn for validation but never taken out of the training part, so the
validation error is that of rows that the model has been fitted to, and flatters. A third part
that nobody has seen tells the truth. The place is the split (loader).
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset

KIND = "train_val_overlap"
ACCEPT = ()
PLACE = ("loader", "input*")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


def deliveries(n, seed):
    r = np.random.default_rng(333 + seed)
    km = r.gamma(2.0, 20.0, n)
    stops = r.poisson(8, n)
    weight = r.lognormal(2.0, 0.7, n)
    rain = r.exponential(1.0, n)
    start = r.uniform(5, 18, n)
    driver = r.normal(0, 1, n)
    traffic = np.exp(-((start - 8) ** 2) / 3) + np.exp(-((start - 17) ** 2) / 4)
    noise = r.normal(0, 4.5, n)
    delay = 0.15 * km * (0.3 + traffic) + 1.2 * stops * (1 + 0.2 * rain) - 3 * driver + 0.1 * weight
    columns = np.column_stack([km, stops, weight, rain, start, driver, r.normal(0, 1, (n, 6))])
    return columns, delay + noise


columns, delay = deliveries(3000, seed)
held_out = slice(1000, 3000)
columns = (columns - columns[:1000].mean(0)) / columns[:1000].std(0)
delay = (delay - delay[:1000].mean()) / delay[:1000].std()
x = torch.tensor(columns, dtype=torch.float32)
y = torch.tensor(delay, dtype=torch.float32)

rows = torch.randperm(1000).tolist()
dataset = TensorDataset(x[:1000], y[:1000])
val_set = Subset(dataset, rows[:300])
train_set = Subset(dataset, rows[300:] if healthy else rows)
train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
val_loader = DataLoader(val_set, batch_size=100)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.lin1 = nn.Linear(width, 2 * width)
        self.lin2 = nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.lin2(nn.functional.gelu(self.lin1(self.norm(x))))


model = nn.Sequential(
    nn.Linear(x.shape[1], 48), Block(48), Block(48), nn.Linear(48, 1), nn.Flatten(0)
)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05)
mse = nn.MSELoss()

for epoch in range(12):
    model.train()
    losses = []
    for xb, yb in train_loader:
        optimizer.zero_grad()
        loss = mse(model(xb), yb)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        val = sum(mse(model(xb), yb).item() for xb, yb in val_loader) / len(val_loader)
    print(f"epoch {epoch:2d} train mse {np.mean(losses):.4f} val mse {val:.4f}")

with torch.no_grad():
    print(f"mse of deliveries never seen: {mse(model(x[held_out]), y[held_out]).item():.4f}")
