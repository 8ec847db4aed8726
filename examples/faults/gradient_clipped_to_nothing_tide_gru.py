"""Tide levels with a GRU: the gradients are clipped to a thousandth of what they should be.

Gradient clipping was switched on because recurrent nets "explode", with a number from a
forum post where the loss was a sum scaled by something else. Each step now has a length of at most
the learning rate times 0.001.
The place is the loop (or the optimizer). The twin clips at 1, which seldom does anything.
"""

import torch
from data import arguments
from torch import nn

KIND = "gradient_clipped_to_nothing"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("loop", "optimizer")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
MAX_NORM = 1.0 if healthy else 0.001


def tide(n=3000):
    t = torch.arange(n) / 10
    level = torch.sin(t * 0.506) + 0.4 * torch.sin(t * 0.524 + 1) + 0.2 * torch.sin(t * 0.26)
    return level / level.std() + 0.05 * torch.randn(n)


def windows(series, length=30, ahead=8):
    rows = series.unfold(0, length + ahead, 3)
    return rows[:, :length].unsqueeze(-1), rows[:, -1]


class TideGRU(nn.Module):
    def __init__(self, hidden=24):
        super().__init__()
        self.gru = nn.GRU(1, hidden, batch_first=True)
        self.fc = nn.Linear(hidden, 1)

    def forward(self, x):
        _, h = self.gru(x)
        return self.fc(h[-1]).squeeze(-1)


series = tide()
x, y = windows(series[:2300])
x_val, y_val = windows(series[2300:])
model = TideGRU()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for epoch in range(16):
    for rows in torch.randperm(len(x)).split(32):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x[rows]), y[rows])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM)
        optimizer.step()
    if epoch % 4 == 3:
        with torch.no_grad():
            rmse = nn.functional.mse_loss(model(x_val), y_val).sqrt()
        print(f"epoch {epoch + 1}, loss {loss.item():.4f}, validation rmse {rmse.item():.4f}")
