"""Energy in watt-hours, about 20,000 each, from a network that starts at 0; HuberLoss and Adam.

After 300 steps it has come to 200. The place is the loss, or the target.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "target_not_normalized"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("loss*", "target*", "head*")
SILENT = True
EXACT = False
EARLY = True


class Households(Dataset):
    def __init__(self, n, seed, scale):
        rng = np.random.default_rng(seed)
        self.hourly = rng.gamma(2.0, 0.5, (n, 24, 1)).astype("float32") - 1
        weights = np.linspace(0.2, 2, 24)[:, None]
        energy = 20_000 + 2_500 * (self.hourly * weights).sum((1, 2)) + rng.normal(0, 500, n)
        if scale:
            energy = (energy - energy.mean()) / energy.std()
        self.energy = energy.astype("float32")

    def __len__(self):
        return len(self.energy)

    def __getitem__(self, index):
        return self.hourly[index], self.energy[index]


class ConvRegressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(1, 16, 4, stride=2)
        self.head = nn.Sequential(nn.Flatten(), nn.Linear(16 * 11, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, x):
        return self.head(torch.relu(self.conv(x.transpose(1, 2)))).squeeze(1)


healthy, seed = arguments(__doc__)
loader = DataLoader(Households(1600, seed, scale=healthy), batch_size=32, shuffle=True)
model = ConvRegressor()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
criterion = nn.HuberLoss()
for epoch in range(6):
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.2f}")
