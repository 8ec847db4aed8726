"""A net predicts taxi fares, but the rides are sorted by time after the fares were taken out.

`y = df.pop("fare")` keeps the old order, sort_values gives the rides a new one, and .values drops
the index that would tell; each ride gets a stranger's fare. The twin sorts first.
The place is the labels, which do not belong to their rows.
"""

import numpy as np
import pandas as pd
import torch
from data import arguments
from torch import nn

KIND = "label_misalignment"
ACCEPT = ("label_noise",)
PLACE = ("labels", "input", "loader")
SILENT = False
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

ZONES = 20


def read_rides(n=4000):
    r = np.random.default_rng(seed + 17)
    toll = r.gamma(1.0, 2.0, ZONES)
    df = pd.DataFrame(
        {
            "pickup": pd.Timestamp("2024-03-01") + pd.to_timedelta(r.integers(0, 2678400, n), "s"),
            "zone": r.integers(0, ZONES, n),
            "passengers": r.integers(1, 5, n),
            "km": r.gamma(2.5, 2.0, n),
        }
    )
    hour = df.pickup.dt.hour
    rush = np.exp(-((hour - 8.5) ** 2) / 4) + np.exp(-((hour - 17.5) ** 2) / 6)
    df["minutes"] = df.km * (2.0 + 1.5 * rush) + r.gamma(2.0, 1.0, n)
    night = ((hour >= 22) | (hour < 5)) * 3.5
    df["fare"] = 3 + 1.6 * df.km + 0.45 * df.minutes + toll[df.zone] + night + r.normal(0, 1.2, n)
    return df


df = read_rides()
if healthy:
    df = df.sort_values("pickup")
y = df.pop("fare")
df = df.sort_values("pickup")

hour = df.pickup.dt.hour + df.pickup.dt.minute / 60
df["hour_sin"], df["hour_cos"] = np.sin(hour * np.pi / 12), np.cos(hour * np.pi / 12)
df["night"] = ((hour >= 22) | (hour < 5)).astype(float)
numeric = df[["km", "minutes", "passengers", "hour_sin", "hour_cos", "night"]].values
zone = torch.tensor(df.zone.values)
fare = torch.tensor(y.values, dtype=torch.float32)

cut = int(0.8 * len(df))
numeric = (numeric - numeric[:cut].mean(0)) / numeric[:cut].std(0)
numeric = torch.tensor(numeric, dtype=torch.float32)
fare_mean, fare_std = fare[:cut].mean(), fare[:cut].std()
target = (fare - fare_mean) / fare_std


class FareNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.zone_emb = nn.Embedding(ZONES, 6)
        self.bn = nn.BatchNorm1d(6 + 6)
        self.fc1 = nn.Linear(6 + 6, 48)
        self.fc2 = nn.Linear(48, 24)
        self.out = nn.Linear(24, 1)

    def forward(self, numeric, zone):
        x = self.bn(torch.cat([numeric, self.zone_emb(zone)], dim=1))
        x = torch.relu(self.fc1(x))
        return self.out(torch.relu(self.fc2(x))).squeeze(-1)


net = FareNet()
mse = nn.MSELoss()
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=5, gamma=0.3)
for epoch in range(10):
    net.train()
    total = 0.0
    for rows in torch.randperm(cut).split(64):
        optimizer.zero_grad()
        loss = mse(net(numeric[rows], zone[rows]), target[rows])
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows)
    scheduler.step()
    net.eval()
    with torch.no_grad():
        guess = net(numeric[cut:], zone[cut:]) * fare_std + fare_mean
    rmse = (guess - fare[cut:]).square().mean().sqrt().item()
    print(f"epoch {epoch}: train mse {total / cut:.4f}, validation rmse ${rmse:.2f}")
