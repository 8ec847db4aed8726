"""A dilated causal convolution net forecasts the next value of a series. A warm-up is written as a
function of the step that returns the rate itself, for LambdaLR.

LambdaLR multiplies the optimizer's own rate by what the function returns: 1e-3 times 1e-3, and the
net creeps. The printed losses do fall a little, every epoch. The place is the optimizer.
"""

import torch
from data import arguments
from torch import nn
from torch.nn import functional as F

KIND = "learning_rate_too_low"
ACCEPT = ()
PLACE = ("optimizer",)
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)

PEAK, WARM = 2e-3, 30


class Block(nn.Module):
    def __init__(self, width, dilation):
        super().__init__()
        self.pad = 2 * dilation
        self.conv = nn.Conv1d(width, width, 3, dilation=dilation)
        self.mix = nn.Conv1d(width, width, 1)

    def forward(self, x):
        return x + self.mix(F.silu(self.conv(F.pad(x, (self.pad, 0)))))


class Forecaster(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.inp = nn.Conv1d(1, width, 1)
        self.blocks = nn.ModuleList([Block(width, d) for d in (1, 2, 4, 8)])
        self.out = nn.Conv1d(width, 1, 1)

    def forward(self, x):
        h = self.inp(x)
        for block in self.blocks:
            h = block(h)
        return self.out(F.silu(h))


def series(n, g):
    t = torch.arange(n).float()
    s = (t / 4.1).sin() + 0.6 * (t / 11.7 + 1).sin() * (t / 53).cos() + 0.3 * (t / 1.9).sin()
    noise = 0.1 * torch.randn(n, generator=g)
    return (s + noise - s.mean()) / s.std()


def windows(s, length=64):
    w = s.unfold(0, length + 1, 8)
    return w[:, None, :-1], w[:, None, 1:]


def warmup(step):
    return PEAK * min(1.0, (step + 1) / WARM)


s = series(6000, torch.Generator().manual_seed(seed))
x, y = windows(s[:4800])
x_val, y_val = windows(s[4800:])
model = Forecaster()
optimizer = torch.optim.AdamW(model.parameters(), lr=1.0 if healthy else PEAK)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, warmup)

for epoch in range(12):
    model.train()
    total, count = 0.0, 0
    for rows in torch.randperm(len(x)).split(32):
        loss = F.mse_loss(model(x[rows])[..., 16:], y[rows][..., 16:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        total, count = total + loss.item(), count + 1
    model.eval()
    with torch.no_grad():
        val = F.mse_loss(model(x_val)[..., 16:], y_val[..., 16:])
    print(f"epoch {epoch}: train {total / count:.4f} val {val.item():.4f}")
