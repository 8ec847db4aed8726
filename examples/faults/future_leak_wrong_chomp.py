"""A temporal convolution net learns next-hour load at every hour of a window; its convolutions are
trimmed on the wrong side.

Each causal convolution pads both sides and must cut its tail; the user cuts the head, so that the
output at hour t sees the hours after t, among them the target. Teacher-forced validation is
splendid, the real forecast useless. The place is the tcn blocks.
"""

import math

import torch
from data import arguments
from torch import nn
from torch.nn import functional as F

KIND = "future_leak"
ACCEPT = ("target_leak",)
PLACE = ("blocks*", "head*", "input*", "*chomp*")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


class Chomp(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.size = size

    def forward(self, x):
        return x[..., : -self.size] if healthy else x[..., self.size :]


class TemporalBlock(nn.Module):
    def __init__(self, c_in, c_out, kernel, dilation):
        super().__init__()
        pad = (kernel - 1) * dilation
        self.conv = nn.Conv1d(c_in, c_out, kernel, padding=pad, dilation=dilation)
        self.chomp = Chomp(pad)
        self.mix = nn.Conv1d(c_out, c_out, 1)
        self.skip = nn.Conv1d(c_in, c_out, 1) if c_in != c_out else nn.Identity()

    def forward(self, x):
        h = F.gelu(self.chomp(self.conv(x)))
        return self.skip(x) + F.gelu(self.mix(h))


class LoadTCN(nn.Module):
    def __init__(self, features=3, channels=24, kernel=3, levels=4):
        super().__init__()
        widths = [features] + [channels] * levels
        self.blocks = nn.Sequential(
            *[TemporalBlock(widths[i], widths[i + 1], kernel, 2**i) for i in range(levels)]
        )
        self.head = nn.Conv1d(channels, 1, 1)

    def forward(self, x):
        return self.head(self.blocks(x)).squeeze(1)


def series(n, g):
    t = torch.arange(n, dtype=torch.float32)
    day, week = 2 * math.pi * t / 24, 2 * math.pi * t / 168
    e = torch.randn(n, generator=g)
    ar = torch.zeros(n)
    for i in range(2, n):
        ar[i] = 1.3 * ar[i - 1] - 0.42 * ar[i - 2] + 0.35 * e[i]
    load = 0.8 * torch.sin(day - 1.2) + 0.35 * torch.sin(2 * day) + 0.3 * torch.cos(week) + ar
    load = (load - load.mean()) / load.std()
    return torch.stack([load, day.sin(), day.cos()])


class Windows:
    def __init__(self, data, length, batch, g):
        self.data, self.length, self.batch, self.g = data, length, batch, g

    def draw(self):
        start = torch.randint(
            0, self.data.shape[1] - self.length - 1, (self.batch,), generator=self.g
        )
        idx = start[:, None] + torch.arange(self.length + 1)
        w = self.data[:, idx].transpose(0, 1)  # (batch, features, length + 1)
        return w[..., :-1], w[:, 0, 1:]


@torch.no_grad()
def evaluate(net, data, length, stride=7):
    net.eval()
    starts = torch.arange(0, data.shape[1] - length - 1, stride)
    w = data[:, starts[:, None] + torch.arange(length + 1)].transpose(0, 1)
    out = net(w[..., :-1])
    teacher = F.mse_loss(out[:, length // 2 :], w[:, 0, 1 + length // 2 :]).sqrt().item()
    live = F.mse_loss(out[:, -1], w[:, 0, -1]).sqrt().item()  # nothing after the last hour is known
    net.train()
    return teacher, live


g = torch.Generator().manual_seed(seed)
data = series(6000, g)
train, val = data[:, :4800], data[:, 4800:]
length = 72
net = LoadTCN()
opt = torch.optim.AdamW(net.parameters(), lr=3e-3, weight_decay=1e-3)
max_iters, warmup = 500, 50
sched = torch.optim.lr_scheduler.LambdaLR(
    opt,
    lambda s: min((s + 1) / warmup, 0.5 * (1 + math.cos(math.pi * min(1, s / max_iters))) + 0.02),
)
windows = Windows(train, length, 32, g)
for it in range(max_iters):
    x, y = windows.draw()
    loss = F.mse_loss(net(x), y)
    opt.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    opt.step()
    sched.step()
    if (it + 1) % 100 == 0:
        teacher, live = evaluate(net, val, length)
        print(
            f"iter {it + 1} loss {loss.item():.4f} | val rmse in window {teacher:.4f} | next hour, live {live:.4f}"  # noqa: E501
        )
