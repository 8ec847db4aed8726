"""The market value of football players: the network is to give thousands of euros as they are.

Inputs are standardised, but the target stays at its scale, several thousands on average. A
network whose outputs begin near zero and whose weights move by a thousandth in a step is busy the
whole run with getting near the mean. It is a common first attempt with money. The place is the
target, thus the loss or the output. The twin standardises the target by the training part and
turns the forecasts back into euros for the report.
"""

import numpy as np
import torch
from data import arguments
from torch import nn, optim
from torch.utils.data import DataLoader, Dataset

KIND = "target_not_normalized"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("output*", "loss*", "target", "input*", "loader", "net.4")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


def squad(n, rng):
    age = rng.uniform(17, 37, n)
    position = rng.integers(0, 4, n)
    goals = rng.poisson(np.array([0.05, 1.5, 4.0, 9.0])[position])
    minutes = rng.uniform(200, 3200, n)
    contract = rng.uniform(0.2, 5, n)
    league = rng.integers(0, 3, n)
    log_value = 8.6 - 0.006 * (age - 25) ** 2 + 0.05 * goals + 0.25 * (minutes - 1700) / 1000
    log_value += 0.12 * contract + np.array([0.5, 0.0, -0.6])[league] + rng.normal(0, 0.12, n)
    x = np.column_stack([age, goals, minutes, contract, np.eye(4)[position], np.eye(3)[league]])
    return x, np.exp(log_value)  # thousands of euros


class Players(Dataset):
    def __init__(self, x, value, statistics):
        (x_mean, x_std), (y_mean, y_std) = statistics
        self.x = torch.tensor((x - x_mean) / x_std, dtype=torch.float32)
        self.y = torch.tensor((value - y_mean) / y_std, dtype=torch.float32)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, index):
        return self.x[index], self.y[index]


class ValueNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(11, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1)
        )

    def forward(self, x):
        return self.net(x).squeeze(-1)


rng = np.random.default_rng(seed)
x_train, v_train = squad(2400, rng)
x_val, v_val = squad(600, rng)
scale = (v_train.mean(), v_train.std()) if healthy else (0.0, 1.0)
statistics = ((x_train.mean(0), x_train.std(0)), scale)
train_loader = DataLoader(Players(x_train, v_train, statistics), batch_size=64, shuffle=True)
val_loader = DataLoader(Players(x_val, v_val, statistics), batch_size=600)

model = ValueNet()
optimizer = optim.Adam(model.parameters(), lr=1e-3)
criterion = nn.MSELoss()
for epoch in range(15):
    model.train()
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
    if epoch % 3 == 2:
        model.eval()
        with torch.no_grad():
            x, y = next(iter(val_loader))
            forecast = model(x) * scale[1] + scale[0]
            truth = y * scale[1] + scale[0]
        mae = (forecast - truth).abs().mean().item()
        r2 = 1 - ((forecast - truth) ** 2).mean() / truth.var()
        print(f"epoch {epoch + 1}: loss {loss.item():.4g}, MAE {mae:.0f} kEUR, R2 {r2:.3f}")
