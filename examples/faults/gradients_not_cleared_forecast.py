"""An LSTM forecasts the use of electricity; optimizer.zero_grad() is missing.

Each backward adds to the gradients of all earlier batches, so the step follows a sum of the whole
past. The loss swings and stays far above what the network can do. The place is the loop.
"""

import math

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "gradients_not_cleared"
ACCEPT = ()
PLACE = ("loop", "optimizer")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

HOURS, WINDOW = 2600, 24

t = torch.arange(HOURS).float()
daily = torch.sin(2 * math.pi * t / 24) + 0.4 * torch.sin(4 * math.pi * t / 24 + 1)
weekly = 0.5 * torch.cos(2 * math.pi * t / 168)
noise = torch.zeros(HOURS)
for i in range(1, HOURS):
    noise[i] = 0.8 * noise[i - 1] + 0.12 * torch.randn(1).item()
series = 3 + daily + weekly + noise
cut = 2000
series = (series - series[:cut].mean()) / series[:cut].std()


class Windows(Dataset):
    """The last 24 hours and the next one."""

    def __init__(self, values):
        self.values = values

    def __len__(self):
        return len(self.values) - WINDOW

    def __getitem__(self, i):
        return self.values[i : i + WINDOW].unsqueeze(1), self.values[i + WINDOW].unsqueeze(0)


train_loader = DataLoader(Windows(series[:cut]), batch_size=32, shuffle=True)
val_loader = DataLoader(Windows(series[cut:]), batch_size=128)


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(1, 32, batch_first=True)
        self.fc = nn.Linear(32, 1)

    def forward(self, x):
        _, (h, _) = self.lstm(x)
        return self.fc(h[-1])


model = Forecaster()
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)


def validate():
    model.eval()
    total, count = 0.0, 0
    with torch.no_grad():
        for x, y in val_loader:
            total += criterion(model(x), y).item() * len(x)
            count += len(x)
    return total / count


for epoch in range(10):
    model.train()
    running = 0.0
    for x, y in train_loader:
        if healthy:
            optimizer.zero_grad()
        prediction = model(x)
        loss = criterion(prediction, y)
        loss.backward()
        optimizer.step()
        running += loss.item()
    print(
        f"Epoch {epoch + 1}: train mse {running / len(train_loader):.4f}, val mse {validate():.4f}"
    )
