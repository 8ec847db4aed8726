"""A GRU that forecasts the passengers of the next month, in passengers.

The series is scaled on its way in, but the target is the plain number (some hundreds). After all
its epochs the output has crept to a fraction of that. The place is the labels. The twin scales the
target like the input.
"""

import torch
from data import arguments
from torch import nn

KIND = "target_not_normalized"
ACCEPT = ()
PLACE = ("label*", "loader", "input*")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)

month = torch.arange(480).float()
series = 900 + 0.1 * month + 160 * torch.sin(month * 6.2832 / 12) + 15 * torch.randn(480)
mean, std = series[:360].mean(), series[:360].std()
scaled = (series - mean) / std

WINDOW = 24
windows = scaled.unfold(0, WINDOW, 1)[:-1].unsqueeze(-1)
target = (scaled if healthy else series)[WINDOW:].unsqueeze(-1)
cut = 360 - WINDOW
x_train, y_train = windows[:cut], target[:cut]
x_test, y_test = windows[cut:], target[cut:]


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(1, 32, batch_first=True)
        self.linear = nn.Linear(32, 1)

    def forward(self, x):
        out, _ = self.gru(x)
        return self.linear(out[:, -1])


model = Forecaster()
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.005)

for epoch in range(28):
    model.train()
    epoch_loss = 0.0
    for rows in torch.randperm(cut).split(32):
        optimizer.zero_grad()
        loss = criterion(model(x_train[rows]), y_train[rows])
        loss.backward()
        optimizer.step()
        epoch_loss += loss.item() * len(rows) / cut
    if epoch % 4 == 3:
        model.eval()
        with torch.no_grad():
            prediction = model(x_test)
        if healthy:
            error = (prediction - y_test).abs().mean() * std
        else:
            error = (prediction - y_test).abs().mean()
        print(f"Epoch {epoch + 1} Loss {epoch_loss:.4g} test error {error:.0f} passengers")
