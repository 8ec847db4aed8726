"""A temporal convolution forecasts the volatility of five stocks; ReduceLROnPlateau watches the
validation loss with mode "max".

The scheduler was taken from a project that watched the accuracy. Each evaluation with a falling
loss counts as "no improvement", so the rate is cut to a fifth every fourth evaluation and is gone
before the model has learnt much. The place is the scheduler (loop, optimizer).
"""

from dataclasses import dataclass, field

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "schedule_collapsed"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("loop", "optimizer")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)


@dataclass
class Settings:
    assets: int = 5
    lookback: int = 32
    channels: int = 24
    steps: int = 800
    eval_every: int = 20
    batch: int = 48
    lr: float = 5e-4
    plateau: dict = field(
        default_factory=lambda: {"factor": 0.2, "patience": 3, "mode": "min" if healthy else "max"}
    )


S = Settings()


def market(days, rng):
    """Log volatility: three factors of different memory; returns follow it, with leverage."""
    fast, slow, mid = np.zeros(S.assets), np.zeros(S.assets), 0.0
    returns, vols = np.zeros((days, S.assets)), np.zeros((days, S.assets))
    r = np.zeros(S.assets)
    for t in range(days):
        mid = 0.97 * mid + 0.12 * rng.normal()
        fast = 0.75 * fast - 0.12 * np.minimum(r, 0) + 0.1 * rng.normal(size=S.assets)
        slow = 0.99 * slow + 0.06 * rng.normal(size=S.assets)
        vols[t] = -0.6 + mid + fast + slow
        r = np.exp(vols[t].clip(-3, 2)) * rng.normal(size=S.assets)
        returns[t] = r
    return returns, vols


class TCN(nn.Module):
    def __init__(self, s):
        super().__init__()
        c = s.channels
        self.inp = nn.Conv1d(3 * s.assets, c, 1)
        self.blocks = nn.ModuleList(nn.Conv1d(c, c, 3, dilation=d) for d in (1, 2, 4, 8))
        self.norms = nn.ModuleList(nn.GroupNorm(4, c) for _ in self.blocks)
        self.out = nn.Linear(c, s.assets)

    def forward(self, x):
        h = self.inp(x)
        for conv, norm in zip(self.blocks, self.norms, strict=False):
            pad = nn.functional.pad(h, (2 * conv.dilation[0], 0))
            h = h + torch.relu(norm(conv(pad)))
        return self.out(h[..., -1])


def tensors(days, rng):
    returns, vols = market(days, rng)
    feats = np.concatenate(
        [np.clip(returns, -4, 4), np.log(np.abs(returns) + 0.05) + 1.5, np.minimum(returns, 0)], 1
    )
    x = torch.tensor(feats, dtype=torch.float32).T.unfold(1, S.lookback, 1).transpose(0, 1)
    y = torch.tensor(vols[S.lookback :], dtype=torch.float32)
    return x[: len(y)].contiguous(), y


rng = np.random.default_rng(seed)
x, y = tensors(9000, rng)
xv, yv = tensors(1000, rng)
centre, spread = y.mean(0), y.std(0)
y, yv = (y - centre) / spread, (yv - centre) / spread
net = TCN(S)
optimizer = torch.optim.AdamW(net.parameters(), lr=S.lr, weight_decay=1e-3)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, **S.plateau)
criterion = nn.MSELoss()
best = float("inf")
for step in range(1, S.steps + 1):
    rows = torch.randint(0, len(x), (S.batch,))
    loss = criterion(net(x[rows]), y[rows])
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimizer.step()
    if step % S.eval_every == 0:
        net.eval()
        with torch.no_grad():
            val = criterion(net(xv), yv).item()
        net.train()
        scheduler.step(val)
        best = min(best, val)
        if step % (10 * S.eval_every) == 0:
            print(
                f"step {step} train {loss.item():.4f} val {val:.4f} best {best:.4f} lr {optimizer.param_groups[0]['lr']:.1e}"  # noqa: E501
            )
