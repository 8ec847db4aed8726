"""Hourly bike hire, with a root-mean-square loss of one's own that broadcasts.

The network gives a column (B, 1), the Dataset a scalar per row, so a vector (B,). `F.mse_loss`
would have warned; the home-made RMSE subtracts them to a square (B, B) in which every answer is
held against every hour. The best answer to that is the mean for all. The place is the loss. The
twin squeezes the model's output, as the evaluation does anyway.
"""

import math

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "loss_shape_broadcast"
ACCEPT = ()
PLACE = ("loss*",)
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


class Hours(Dataset):
    def __init__(self, n, r, scale=None):
        hour, day = r.integers(0, 24, n), r.integers(0, 7, n)
        warm, rain, wind = r.normal(0, 1, n), r.exponential(0.6, n), r.normal(0, 1, n)
        commute = np.exp(-((hour - 8) ** 2) / 4) + np.exp(-((hour - 17) ** 2) / 6)
        outing = np.exp(-((hour - 14) ** 2) / 18)
        count = np.where(day < 5, 300 * commute + 60 * outing, 240 * outing)
        count = count * np.exp(0.25 * warm - 0.5 * rain) + 20 + r.normal(0, 12, n)
        self.scale = scale or (float(count.mean()), float(count.std()))
        self.y = ((count - self.scale[0]) / self.scale[1]).astype("float32")
        angle = 2 * math.pi * hour / 24
        columns = [
            np.sin(angle),
            np.cos(angle),
            np.sin(2 * angle),
            np.cos(2 * angle),
            day >= 5,
            warm,
            rain,
            wind,
        ]
        self.x = np.stack(columns, 1).astype("float32")

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


class RMSELoss(nn.Module):
    def __init__(self, eps=1e-8):
        super().__init__()
        self.eps = eps

    def forward(self, said, true):
        return torch.sqrt(((said - true) ** 2).mean() + self.eps)


class HireNet(nn.Module):
    def __init__(self, columns=8, width=64):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(columns, width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Linear(width, 1),
        )

    def forward(self, x):
        return self.net(x).squeeze(1) if healthy else self.net(x)


r = np.random.default_rng(seed)
train_set = Hours(4000, r)
val_set = Hours(1000, r, train_set.scale)
loader = DataLoader(train_set, batch_size=100, shuffle=True)
model, criterion = HireNet(), RMSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=7, gamma=0.4)
for epoch in range(14):
    model.train()
    total = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item()
    scheduler.step()
    model.eval()
    with torch.no_grad():
        said = model(torch.from_numpy(val_set.x)).view(-1).numpy()
    error = np.abs(said - val_set.y).mean() * val_set.scale[1]
    r2 = 1 - ((said - val_set.y) ** 2).mean() / val_set.y.var()
    print(
        f"epoch {epoch:2d} rmse {total / len(loader):.3f} val error {error:.1f} bikes R2 {r2:.3f}"
    )
