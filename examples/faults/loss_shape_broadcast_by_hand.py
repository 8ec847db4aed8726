"""The error is ((output - target) ** 2).mean() with shapes (n, 1) and (n,): a table of n times n.

The network learns the mean. The place is the loss.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "loss_shape_broadcast"
ACCEPT = ()
PLACE = ("loss*", "")
SILENT = False
EXACT = True
EARLY = True


class Windows(Dataset):
    """Windows of a sum of two waves, and the value after each."""

    def __init__(self, length=1500, window=20):
        t = torch.arange(length + window + 1, dtype=torch.float32)
        self.series = (
            torch.sin(0.21 * t) + 0.5 * torch.sin(0.77 * t + 1) + 0.05 * torch.randn(len(t))
        )
        self.length, self.window = length, window

    def __len__(self):
        return self.length

    def __getitem__(self, i):
        return self.series[i : i + self.window].unsqueeze(-1), self.series[i + self.window]


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(1, 24, batch_first=True)
        self.out = nn.Linear(24, 1)

    def forward(self, x):
        h, _ = self.lstm(x)
        return self.out(h[:, -1, :])


healthy, seed = arguments(__doc__)
loader = DataLoader(Windows(), batch_size=32, shuffle=True)
model = Forecaster()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(5):
    total = 0.0
    for x, y in loader:
        y_hat = model(x)
        if healthy:
            y_hat = y_hat.squeeze(1)
        loss = ((y_hat - y) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch}, loss {total / len(loader):.4f}")
