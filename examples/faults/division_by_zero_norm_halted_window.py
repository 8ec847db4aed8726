"""A PatchTST-like forecaster with per-window normalisation; windows in which a share's trading was
halted have no spread, and 0/0 is NaN.

The normalisation layer divides by the standard deviation without an epsilon. About one window in
1,500 is flat. After it every weight is NaN. The place is the layer RevNorm (norm).
"""

import torch
from data import arguments
from torch import nn

KIND = "division_by_zero_norm"
ACCEPT = ()
PLACE = ("norm", "norm*", "*norm*")
SILENT = False
EXACT = True
EARLY = False
healthy, seed = arguments(__doc__)

EPS = 1e-5 if healthy else 0.0


class RevNorm(nn.Module):
    """Reversible instance normalisation (Kim et al. 2022), without the affine part."""

    def forward(self, x):
        self.mean = x.mean(1, keepdim=True)
        self.std = (x.var(1, keepdim=True, unbiased=False) + EPS).sqrt()
        return (x - self.mean) / self.std

    def reverse(self, y):
        return y * self.std + self.mean


class PatchForecaster(nn.Module):
    def __init__(self, look_back=48, horizon=8, patch=8, d=32):
        super().__init__()
        self.patch = patch
        self.norm = RevNorm()
        self.embed = nn.Linear(patch, d)
        self.pos = nn.Parameter(0.02 * torch.randn(look_back // patch, d))
        self.encoder = nn.TransformerEncoderLayer(
            d, 4, 64, dropout=0.1, batch_first=True, norm_first=True
        )
        self.head = nn.Linear(d * (look_back // patch), horizon)

    def forward(self, x):
        z = self.norm(x)
        z = z.unfold(1, self.patch, self.patch)
        z = self.encoder(self.embed(z) + self.pos)
        return self.norm.reverse(self.head(z.flatten(1)))


def prices(n_shares, days, g):
    """Log prices in which momentum fades and a sector cycle shows; trading is halted for 60 days now and then."""  # noqa: E501
    shock = 0.012 * torch.randn(n_shares, days, generator=g)
    phase = 6.28 * torch.rand(n_shares, 1, generator=g)
    cycle = 0.08 * torch.sin(torch.arange(days) * 6.283 / 32 + phase)
    drift = torch.zeros(n_shares)
    level = torch.zeros(n_shares, days)
    for t in range(1, days):
        drift = 0.93 * drift + 0.25 * shock[:, t]
        level[:, t] = level[:, t - 1] + drift + 0.2 * shock[:, t]
    level = level + cycle
    for i in range(0, n_shares, 9):
        start = int(torch.randint(60, days - 120, (1,), generator=g))
        level[i, start : start + 49] = level[i, start]
    return level


def windows(level, look_back, horizon, stride=3):
    w = level.unfold(1, look_back + horizon, stride).reshape(-1, look_back + horizon)
    return w[:, :look_back].contiguous(), w[:, look_back:].contiguous()


g = torch.Generator().manual_seed(seed)
x, y = windows(prices(60, 500, g), 48, 8, 1)
xv, yv = windows(prices(20, 400, g)[1:9], 48, 8)
model = PatchForecaster()
opt = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-3)
loss_fn = nn.SmoothL1Loss(beta=0.05)
total_steps = 500
sched = torch.optim.lr_scheduler.OneCycleLR(opt, 2e-3, total_steps=total_steps)
naive = (yv - xv[:, -1:]).abs().mean()
step = 0
while step < total_steps:
    for rows in torch.randperm(len(x)).split(64):
        if step == total_steps:
            break
        model.train()
        loss = loss_fn(model(x[rows]), y[rows])
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        sched.step()
        step += 1
        if step % 100 == 0:
            model.eval()
            with torch.no_grad():
                mae = (model(xv) - yv).abs().mean()
            print(
                f"step {step}: loss {loss.item():.5f} val MAE {mae:.4f} (last value: {naive:.4f})"
            )
