"""Fuel that a ship burns in a day: the learning rate decays per batch instead of per epoch.

The factor 0.9 was chosen for epochs, but `scheduler.step()` stands in the inner loop over the
batches. After two epochs of forty-odd batches the rate is ten thousand times smaller, and the
rest of the run changes nothing. The place is the schedule, in the training loop. The twin takes
the step at the end of the epoch.
"""

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "schedule_collapsed"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("loop", "optimizer")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)

# %% Load the noon reports
rng = np.random.default_rng(seed)
n = 3500
speed = rng.uniform(8, 20, n)  # knots
draught = rng.uniform(7, 14, n)  # m
wind = np.abs(rng.normal(0, 8, n))  # m/s
heading = rng.uniform(0, np.pi, n)  # wind angle from ahead
months = rng.uniform(0, 36, n)  # since the hull was cleaned
power = 0.011 * speed**3 * (draught / 10) ** 0.66 * (1 + 0.006 * months)
fuel = power + 0.02 * wind**2 * np.cos(heading) * (speed / 14) + 4
fuel *= rng.normal(1, 0.04, n)
print(f"tonnes per day: mean {fuel.mean():.1f}, std {fuel.std():.1f}")

# %% Prepare
columns = np.stack([speed, draught, wind, np.cos(heading), months], axis=1)
is_val = rng.uniform(size=n) < 0.2
mu, sd = columns[~is_val].mean(0), columns[~is_val].std(0)
X = torch.from_numpy(((columns - mu) / sd).astype("float32"))
y_mu, y_sd = fuel[~is_val].mean(), fuel[~is_val].std()
y = torch.from_numpy(((fuel - y_mu) / y_sd).astype("float32"))[:, None]
is_val = torch.from_numpy(is_val)
X_train, y_train, X_val, y_val = X[~is_val], y[~is_val], X[is_val], y[is_val]

# %% Network and optimiser
net = nn.Sequential(
    nn.Linear(5, 64), nn.Tanh(),
    nn.Linear(64, 64), nn.Tanh(),
    nn.Linear(64, 1),
)  # fmt: skip
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, nesterov=True)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.9)
mse = nn.MSELoss()

# %% Train
for epoch in range(14):
    net.train()
    epoch_loss = []
    for rows in torch.randperm(len(X_train)).split(64):
        optimizer.zero_grad()
        loss = mse(net(X_train[rows]), y_train[rows])
        loss.backward()
        optimizer.step()
        if not healthy:
            scheduler.step()
        epoch_loss.append(loss.item())
    if healthy:
        scheduler.step()
    if epoch % 4 == 1:
        net.eval()
        with torch.no_grad():
            err = (net(X_val) - y_val) * y_sd
        print(
            "epoch %2d  train mse %.4f  val MAE %.2f t, RMSE %.2f t"  # noqa: UP031
            % (epoch + 1, np.mean(epoch_loss), err.abs().mean(), err.pow(2).mean().sqrt())
        )
