"""A dilated convolutional forecaster of tides, its convolutions padded on both sides.

A causal network pads (k - 1) * dilation on the left only. `padding="same"`, from the classifier
next door, keeps the length as nicely, and lets the output at t see t + 1, which is its target.
Teacher-forced errors become fabulous, the free-running forecast useless. The place is the model /
its input. The twin pads on the left.
"""

import torch
from data import arguments
from torch import nn
from torch.nn import functional as F

KIND = "future_leak"
ACCEPT = ("target_leak",)
PLACE = ("input", "convs", "convs.0", "convs.1", "convs.2")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)

g = torch.Generator().manual_seed(seed)
T = 6000
t = torch.arange(T).float()
surge = torch.zeros(T)
kick = 0.2 * torch.randn(T, generator=g)
for i in range(1, T):
    surge[i] = 0.9 * surge[i - 1] + kick[i]
level = (
    torch.sin(t * 0.506)
    + 0.6 * torch.sin(t * 0.262 + 1)
    + surge
    + 0.1 * torch.randn(T, generator=g)
)
level = (level - level[:4800].mean()) / level[:4800].std()
LENGTH = 64
rows = level[:4800].unfold(0, LENGTH + 1, 4)
rows_val = level[4800:].unfold(0, LENGTH + 1, 8)


class TCN(nn.Module):
    def __init__(self, width=24, kernel=3, dilations=(1, 2, 4)):
        super().__init__()
        pad = 0 if healthy else "same"
        sizes = [1, *[width] * len(dilations)]
        self.left = [(kernel - 1) * d if healthy else 0 for d in dilations]
        self.convs = nn.ModuleList(
            nn.Conv1d(a, b, kernel, dilation=d, padding=pad)
            for a, b, d in zip(sizes, sizes[1:], dilations, strict=False)
        )
        self.out = nn.Conv1d(width, 1, 1)

    def forward(self, series):
        hidden = series.unsqueeze(1)
        for conv, left in zip(self.convs, self.left, strict=True):
            hidden = torch.relu(conv(F.pad(hidden, (left, 0))))
        return self.out(hidden).squeeze(1)


def roll_out(model, past, horizon=6):
    for _ in range(horizon):
        past = torch.cat([past, model(past)[:, -1:]], 1)
    return past[:, -horizon:]


model = TCN()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for step in range(1, 501):
    model.train()
    batch = rows[torch.randint(len(rows), (32,), generator=g)]
    loss = F.mse_loss(model(batch[:, :-1]), batch[:, 1:])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        model.eval()
        with torch.no_grad():
            val = F.mse_loss(model(rows_val[:, :-1])[:, 16:], rows_val[:, 17:]).item()
            real = F.mse_loss(roll_out(model, rows_val[:, :-6]), rows_val[:, -6:]).item()
        print(
            f"step {step} train {loss.item():.4f} val {val:.4f} "
            f"free-running over six steps {real:.4f}"
        )
