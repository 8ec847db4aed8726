"""Counts of lightning strokes in grid cells are forecast by a Poisson regression with exposure;
seven cells in eight have none.

Looks odd: most targets are 0, a few are dozens; the loss (Poisson without its constant) has no
floor at 0, the predictions are logs of rates, single batches spike, and warm-up starts the rate
at nearly nothing. It is sound: deviance against the climatological rate falls on held-out days.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = (
    "Counts of lightning strokes in grid cells are forecast by a Poisson regression with "
    "exposure; seven cells in eight have none"
)

_, seed = arguments(__doc__)


def strokes(days, cells, r):
    d = np.repeat(np.arange(days), cells)
    season = np.cos(2 * np.pi * (d - 190) / 365)
    cape = np.exp(0.9 * r.normal(size=days)[d] + 0.5 * r.normal(size=d.size) + 0.7 * season)
    shear, humid = r.normal(size=d.size), np.clip(r.normal(0.6, 0.2, d.size), 0, 1)
    land, area = r.random(d.size) < 0.6, r.uniform(0.5, 1.5, d.size)
    log_rate = (
        -4.0
        + 1.1 * np.log(cape)
        + 2.2 * humid
        + 0.5 * land
        - 0.35 * shear**2
        + 0.5 * np.log(cape) * (humid > 0.7)
    )
    y = r.poisson(area * np.exp(np.clip(log_rate, -9, 3.5)))
    x = np.stack([np.log(cape), shear, humid, land.astype(float), season], 1)
    return d, x, np.log(area), y


class RateNet(nn.Module):
    def __init__(self, d, width=48):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(d, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1)
        )

    def forward(self, x, log_area):
        return self.net(x).squeeze(1) + log_area


def deviance(log_rate, y):
    rate = log_rate.exp()
    return 2 * (torch.special.xlogy(y, y / rate) - (y - rate)).mean().item()


def main():
    r = np.random.default_rng(8 + seed)
    d, x, log_area, y = strokes(900, 40, r)
    train = np.isin(d, r.permutation(900)[:720])
    x = (x - x[train].mean(0)) / x[train].std(0)
    x, log_area, y = (torch.tensor(a, dtype=torch.float32) for a in (x, log_area, y))
    base = (y[train].sum() / log_area[train].exp().sum()).log()
    print(
        f"zeros {100 * (y == 0).float().mean():.1f} %, largest {y.max():.0f}, climatology's deviance {deviance(base + log_area[~train], y[~train]):.4f}"  # noqa: E501
    )
    loader = DataLoader(
        TensorDataset(x[train], log_area[train], y[train]),
        batch_size=256,
        shuffle=True,
        drop_last=True,
    )
    model = RateNet(x.shape[1])
    nn.init.zeros_(model.net[-1].weight)
    nn.init.constant_(model.net[-1].bias, base.item())
    loss_fn = nn.PoissonNLLLoss(log_input=True, full=False)
    epochs = 8
    opt = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-2)
    total = epochs * len(loader)
    sched = torch.optim.lr_scheduler.OneCycleLR(
        opt, 3e-3, total_steps=total, pct_start=0.2, div_factor=100
    )
    for epoch in range(epochs):
        model.train()
        losses = []
        for xb, ab, yb in loader:
            loss = loss_fn(model(xb, ab), yb)
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            sched.step()
            losses.append(loss.item())
        model.eval()
        with torch.no_grad():
            out = model(x[~train], log_area[~train])
            val, dev = loss_fn(out, y[~train]).item(), deviance(out, y[~train])
        print(f"epoch {epoch:2d} loss {np.mean(losses):+.4f} val {val:+.4f} deviance {dev:.4f}")


main()
