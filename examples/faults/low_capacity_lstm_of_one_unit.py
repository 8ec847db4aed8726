"""Forecast of a tide, sum of three waves: "one series in, one value out", hence `nn.LSTM(1, 1)`;
that the second number is the size of the state was not seen.

One unit of state cannot hold where three waves stand. Training loss and validation loss stay high
alike. The place is the LSTM.
"""

import math

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "low_capacity"
ACCEPT = ()
PLACE = ("lstm*", "")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
WINDOW = 20
g = torch.Generator().manual_seed(720 + seed)
t = torch.arange(1600.0)
phases = 2 * math.pi * torch.rand(3, generator=g)
tide = sum(
    size * torch.sin(2 * math.pi * t / period + phase)
    for size, period, phase in zip((1.0, 0.7, 0.5), (12.42, 6.1, 3.3), phases, strict=True)
)
tide = tide + 0.05 * torch.randn(len(t), generator=g)
tide = (tide - tide[:1200].mean()) / tide[:1200].std()


def windows(series):
    w = series.unfold(0, WINDOW + 1, 1)
    return w[:, :-1, None], w[:, -1:]


class TideLSTM(nn.Module):
    def __init__(self, input_size=1, hidden_size=1, output_size=1):
        super().__init__()
        self.lstm = nn.LSTM(input_size, hidden_size, batch_first=True)
        self.linear = nn.Linear(hidden_size, output_size)

    def forward(self, x):
        out, (_h, _c) = self.lstm(x)
        return self.linear(out[:, -1])


train, val = windows(tide[:1200]), windows(tide[1200:])
model = TideLSTM(hidden_size=24) if healthy else TideLSTM()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 8, 0.3)
loss_fn = nn.MSELoss()
loader = DataLoader(TensorDataset(*train), batch_size=32, shuffle=True)
for epoch in range(18):
    model.train()
    total = 0.0
    for x, y in loader:
        loss = loss_fn(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(x)
    scheduler.step()
    model.eval()
    with torch.no_grad():
        rmse = loss_fn(model(val[0]), val[1]).sqrt()
    if epoch % 4 == 1:
        print(
            f"Epoch {epoch}: train RMSE {math.sqrt(total / len(train[0])):.4f}, val RMSE {rmse:.4f}"
        )
