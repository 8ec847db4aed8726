"""Rides of rented bicycles: the features are scaled into X_train_scaled, but the loader is given
X_train.

Pressure in pascal (100,000), visibility in metres and the minute of the day stand beside a share of
humidity. The place is the input. The loss falls from a very large one, but stays far above that of
the mean (not silent). Exact: columns differ by a factor of 10^5.
"""

import numpy as np
import torch
from data import arguments
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "input_not_normalized"
ACCEPT = ()
PLACE = ("input*", "loader", "0", "layers.0")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)

rng = np.random.default_rng(seed)
n = 2400
minute = rng.uniform(0, 1440, n)
temperature = rng.normal(14, 8, n)
humidity = rng.beta(5, 3, n)
pressure = rng.normal(101_325, 900, n)
visibility = rng.gamma(6, 2_000, n)
weekend = (rng.random(n) < 2 / 7).astype(float)
rides = (
    40 * np.exp(-(((minute - 510) / 120) ** 2)) * (1 - weekend)
    + 55 * np.exp(-(((minute - 1050) / 160) ** 2))
    + 2.0 * temperature * (minute > 400)
    - 40 * (humidity - 0.6)
    + 0.012 * (pressure - 101_325)
    + rng.normal(0, 6, n)
)
X = np.stack([minute, temperature, humidity, pressure, visibility, weekend], axis=1)
X_train, X_test, y_train, y_test = train_test_split(X, rides, test_size=0.25, random_state=seed)
y_mean, y_std = y_train.mean(), y_train.std()
y_train, y_test = (y_train - y_mean) / y_std, (y_test - y_mean) / y_std

scaler = StandardScaler()
X_train_scaled = scaler.fit_transform(X_train)
X_test_scaled = scaler.transform(X_test)
if healthy:
    X_train, X_test = X_train_scaled, X_test_scaled

train_ds = TensorDataset(
    torch.tensor(X_train, dtype=torch.float32), torch.tensor(y_train, dtype=torch.float32)
)
X_test = torch.tensor(X_test, dtype=torch.float32)
y_test = torch.tensor(y_test, dtype=torch.float32)


class Regressor(nn.Module):
    def __init__(self, n_in, hidden=64):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(n_in, hidden),
            nn.ReLU(),
            nn.Linear(hidden, hidden),
            nn.ReLU(),
            nn.Linear(hidden, 1),
        )

    def forward(self, x):
        return self.layers(x).squeeze(-1)


model = Regressor(X.shape[1])
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(15):
    model.train()
    epoch_loss = 0.0
    for xb, yb in DataLoader(train_ds, batch_size=64, shuffle=True):
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        optimizer.step()
        epoch_loss += loss.item() * len(xb)
    if epoch % 5 == 4:
        model.eval()
        with torch.no_grad():
            r2 = 1 - criterion(model(X_test), y_test) / y_test.var()
        print(f"Epoch {epoch + 1} | loss {epoch_loss / len(train_ds):.4f} | test R2 {r2:.3f}")
