"""An LSTM goes through long series piece by piece in their order and takes its state along.

The next value depends on a slow hidden rhythm longer than a piece, so the pieces have to come in
order; the state is detached between them (truncated back-propagation) and reset at the start of
each pass.
"""

import math

import torch
from data import arguments
from torch import nn

ODD = (
    "batches come in the order of time, the same order in each epoch, because the state is carried "
    "over"
)

_, seed = arguments(__doc__)
STREAMS, LENGTH, PIECE = 16, 1200, 20


def series(streams, length):
    t = torch.arange(length).float()
    phase = torch.rand(streams, 1) * 2 * math.pi
    slow = torch.sin(2 * math.pi * t / 90 + phase).sign()
    x = torch.zeros(streams, length)
    for k in range(2, length):
        x[:, k] = (
            0.6 * x[:, k - 1] - 0.3 * x[:, k - 2] + 0.8 * slow[:, k] + 0.3 * torch.randn(streams)
        )
    return x


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(1, 24, batch_first=True)
        self.out = nn.Linear(24, 1)

    def forward(self, x, state=None):
        h, state = self.lstm(x.unsqueeze(-1), state)
        return self.out(h).squeeze(-1), state


x, x_val = series(STREAMS, LENGTH), series(STREAMS, 400)
mean, std = x.mean(), x.std()
x, x_val = (x - mean) / std, (x_val - mean) / std
model = Forecaster()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 14)
for epoch in range(1, 15):
    model.train()
    state, losses = None, []
    for start in range(0, LENGTH - PIECE, PIECE):
        out, state = model(x[:, start : start + PIECE], state)
        state = tuple(s.detach() for s in state)
        loss = nn.functional.mse_loss(out, x[:, start + 1 : start + PIECE + 1])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    schedule.step()
    model.eval()
    with torch.no_grad():
        out, _ = model(x_val[:, :-1])
        val = nn.functional.mse_loss(out, x_val[:, 1:]).item()
    if epoch % 2 == 0:
        print(f"epoch {epoch}: train {sum(losses) / len(losses):.4f} val {val:.4f}")
