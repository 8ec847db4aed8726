"""An LSTM that counts pulses; the squared error is written by hand on (n,) and (n, 1).

The model squeezes its output, the targets are a column, and the difference is an n by n table
without any warning. The network ends up saying the mean. The place is the loss. The twin has both
as columns.
"""

import torch
from data import arguments
from torch import nn

KIND = "loss_shape_broadcast"
ACCEPT = ()
PLACE = ("loss*",)
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


def signals(n, length=25):
    x = (torch.rand(n, length, 1) < 0.05 + 0.5 * torch.rand(n, 1, 1)).float()
    count = x.sum(1)
    x = x + 0.1 * torch.randn(n, length, 1)
    return x, (count - 7.5) / 4


x_train, y_train = signals(1000)
x_val, y_val = signals(300)


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(1, 20, batch_first=True)
        self.linear = nn.Linear(20, 1)

    def forward(self, x):
        states, _ = self.lstm(x)
        out = self.linear(states[:, -1])
        return out if healthy else out.squeeze(1)


def mse(prediction, target):
    return ((prediction - target) ** 2).mean()


model = Counter()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(12):
    model.train()
    for rows in torch.randperm(1000).split(40):
        loss = mse(model(x_train[rows]), y_train[rows])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    model.eval()
    with torch.no_grad():
        prediction = model(x_val).view(-1)
    error = (prediction - y_val.view(-1)).abs().mean() * 4
    print(
        f"epoch {epoch}: loss {loss.item():.3f}, off by {error:.2f} pulses, spread of predictions "
        f"{prediction.std():.3f}"
    )
