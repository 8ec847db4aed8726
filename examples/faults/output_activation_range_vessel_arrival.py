"""How many hours early or late a container ship arrives: the last activation forbids early ships.

The output of the network passes a ReLU, because "a delay is a positive number". But in these
records half of the ships are ahead of their schedule, and for them the target is negative: the
network can at best say zero. The place is the last layer of the sequential model, its output. The
twin ends in the linear layer.
"""

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "output_activation_range"
ACCEPT = ("dead_relu",)
PLACE = ("output*", "7", "6", "model")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)

# 1. Voyages
rng = np.random.default_rng(seed)
n = 2400
distance = rng.gamma(3.0, 900.0, n)  # nautical miles
wind = rng.normal(0, 6, n)  # head wind, m/s
swell = rng.gamma(2.0, 0.9, n)  # m
queue = rng.poisson(3.0, n)  # ships waiting before the port
slack = rng.uniform(0, 12, n)  # hours of reserve in the schedule
draught = rng.normal(12, 1.5, n)
hours = (
    distance / 3000 * (0.9 * wind + 1.5 * swell)
    + 1.3 * queue
    - 1.1 * slack
    + 0.4 * (draught - 12) * swell
    + rng.normal(0, 1.5, n)
)
table = np.stack([distance, wind, swell, queue, slack, draught], axis=1)

# 2. Split and scale by the training part
cut = int(0.8 * n)
mean, std = table[:cut].mean(0), table[:cut].std(0)
X = torch.tensor((table - mean) / std, dtype=torch.float32)
unit = hours[:cut].std()
y = torch.tensor(hours / unit, dtype=torch.float32).unsqueeze(1)
X_train, X_val, y_train, y_val = X[:cut], X[cut:], y[:cut], y[cut:]
print(f"{n} voyages, {np.mean(hours < 0):.0%} early, spread {unit:.1f} h")

# 3. Model
layers = [
    nn.Linear(6, 64),
    nn.BatchNorm1d(64),
    nn.SiLU(),
    nn.Linear(64, 64),
    nn.BatchNorm1d(64),
    nn.SiLU(),
    nn.Linear(64, 1),
]
if not healthy:
    layers.append(nn.ReLU())
model = nn.Sequential(*layers)

# 4. Fit
loss_fn = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=20)
batch = 64
for epoch in range(20):
    model.train()
    order = torch.randperm(cut)
    running = 0.0
    for i in range(0, cut, batch):
        rows = order[i : i + batch]
        optimizer.zero_grad()
        loss = loss_fn(model(X_train[rows]), y_train[rows])
        loss.backward()
        optimizer.step()
        running += loss.item() * len(rows)
    scheduler.step()

    model.eval()
    with torch.no_grad():
        error = model(X_val) - y_val
    rmse = error.square().mean().sqrt().item() * unit
    if (epoch + 1) % 5 == 0:
        print(f"epoch {epoch + 1}: mse {running / cut:.4f}, validation RMSE {rmse:.2f} h")
