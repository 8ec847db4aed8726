"""An LSTM forecasts air pressure; the target stays in pascals, near 101,325, inputs are scaled.

The output layer would have to climb from 0 to a hundred thousand by steps of 0.005, so the model is
still off by a hundred thousand pascals at the end; the loss is 10 to the 10th and hardly falls.
The place is the target (the loss) and the output layer fc.
"""

import numpy as np
import pandas as pd
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "target_not_normalized"
ACCEPT = ()
PLACE = ("loss", "labels", "fc", "target")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

WINDOW, AHEAD = 24, 6
FEATURES = ["pressure", "wind", "temperature"]


def weather(hours):
    rng = np.random.default_rng(seed)
    t = np.arange(hours)
    front, speed = np.zeros(hours), np.zeros(hours)
    for i in range(1, hours):
        speed[i] = 0.97 * speed[i - 1] - 0.004 * front[i - 1] + rng.normal(0, 6)
        front[i] = front[i - 1] + speed[i]
    return pd.DataFrame(
        {
            "pressure": 101_325
            + 1.5 * front
            + 90 * np.sin(np.pi * t / 6)
            + rng.normal(0, 8, hours),
            "wind": 6 - 0.04 * speed + rng.normal(0, 0.5, hours),
            "temperature": 12 + 5 * np.sin(2 * np.pi * t / 24) + rng.normal(0, 1, hours),
        }
    )


class PressureDataset(Dataset):
    def __init__(self, inputs, target):
        self.inputs = torch.tensor(inputs, dtype=torch.float32)
        self.target = torch.tensor(target, dtype=torch.float32)

    def __len__(self):
        return len(self.inputs) - WINDOW - AHEAD

    def __getitem__(self, i):
        return self.inputs[i : i + WINDOW], self.target[i + WINDOW + AHEAD - 1]


class PressureLSTM(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(len(FEATURES), 32, batch_first=True)
        self.fc = nn.Linear(32, 1)

    def forward(self, x):
        out, _ = self.lstm(x)
        return self.fc(out[:, -1]).squeeze(1)


frame = weather(2600)
split = 2000
mean, std = frame[:split].mean(), frame[:split].std()
scaled = (frame - mean) / std
target, unit = frame["pressure"], 1.0
if healthy:
    target, unit = scaled["pressure"], std["pressure"]
train_loader = DataLoader(
    PressureDataset(scaled[:split].to_numpy(), target[:split].to_numpy()),
    batch_size=64,
    shuffle=True,
)
valid_loader = DataLoader(
    PressureDataset(scaled[split:].to_numpy(), target[split:].to_numpy()), batch_size=128
)
model = PressureLSTM()
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(8):
    model.train()
    running = 0.0
    for x, y in train_loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running += loss.item()
    model.eval()
    with torch.no_grad():
        error = torch.cat([(model(x) - y).abs() for x, y in valid_loader]).mean().item()
    print(
        f"Epoch {epoch + 1}, train loss {running / len(train_loader):.4g}, "
        f"validation error {error * unit:.1f} Pa"
    )
