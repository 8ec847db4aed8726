"""A CNN estimates the biomass of a forest plot from a patch of laser heights, with targets in
kilograms per hectare, around 180,000.

The MSE starts above ten thousand millions and Adam's small steps never bring the output to that
size: after all epochs it still tells far less wood than there is. The place is the targets.
"""

import numpy as np
import torch
from data import arguments
from scipy.ndimage import gaussian_filter
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "target_not_normalized"
ACCEPT = ()
PLACE = ("labels", "loss", "loader", "input")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


class ForestPlots(Dataset):
    """Canopy height in metres on 16 by 16 cells, and what stands there."""

    def __init__(self, n, rng):
        heights, biomass = [], []
        for _ in range(n):
            tall, cover = rng.uniform(6, 30), rng.uniform(0.3, 1.0)
            canopy = gaussian_filter(rng.normal(0, 1, (16, 16)), 1.2, mode="wrap")
            canopy = tall * (1 + 0.5 * canopy) * (gaussian_filter(rng.random((16, 16)), 1) < cover)
            heights.append(np.clip(canopy, 0, None))
            wood = (heights[-1] ** 1.4).mean() * 2_600
            biomass.append(wood * rng.lognormal(0, 0.08) + 4_000)
        self.x = torch.tensor(np.stack(heights), dtype=torch.float32).unsqueeze(1)
        self.y = torch.tensor(biomass, dtype=torch.float32)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


class BiomassCNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        )  # fmt: skip
        self.fc = nn.Sequential(nn.Linear(16 * 16, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, x):
        return self.fc(self.conv(x)).squeeze(1)


rng = np.random.default_rng(seed)
train_set, val_set = ForestPlots(800, rng), ForestPlots(200, rng)
height_mean, height_std = train_set.x.mean(), train_set.x.std()
y_mean, y_std = (train_set.y.mean(), train_set.y.std()) if healthy else (0.0, 1.0)
for plots in (train_set, val_set):
    plots.x = (plots.x - height_mean) / height_std
    plots.y = (plots.y - y_mean) / y_std
train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
val_loader = DataLoader(val_set, batch_size=200)

model = BiomassCNN()
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(8):
    model.train()
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        x, y = next(iter(val_loader))
        rest = model(x) - y
    r2 = 1 - (rest.square().mean() / y.var()).item()
    tons = (rest.abs().mean() * y_std / 1000).item()
    print(f"epoch {epoch + 1}: loss {loss.item():.4g}, val R2 {r2:.3f}, error {tons:.1f} t/ha")
