"""A Poisson regression of bicycles counted at a bridge, in thousands.

The loss, without the constant, is minus thirteen thousand and moves by one part in a hundred; the
output's bias begins at the log of the mean.
"""

import torch
from data import arguments, batches
from torch import nn

ODD = "the loss is about minus thirteen thousand from the beginning and moves by a per cent or so"

healthy, seed = arguments(__doc__)
g = torch.Generator().manual_seed(seed + 2)


def days(n):
    warm = torch.randn(n, generator=g)
    rain = torch.rand(n, generator=g).pow(3)
    weekend = (torch.rand(n, generator=g) < 2 / 7).float()
    log_rate = 7.9 + 0.35 * warm - 0.12 * warm**2 - 0.9 * rain - 0.3 * weekend * (1 - warm.tanh())
    x = torch.stack([warm, rain * 2 - 1, weekend], 1)
    return x, torch.poisson(log_rate.exp(), generator=g), log_rate


x, y, _ = days(1500)
x_val, y_val, rate_val = days(500)
net = nn.Sequential(nn.Linear(3, 32), nn.SiLU(), nn.Linear(32, 32), nn.SiLU(), nn.Linear(32, 1))
with torch.no_grad():
    net[4].bias.fill_(y.mean().log())
criterion = nn.PoissonNLLLoss(log_input=True)
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 450)
for step, (xb, yb) in enumerate(batches(x, y, size=64, steps=450, seed=seed), 1):
    loss = criterion(net(xb).squeeze(1), yb)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    if step % 90 == 0:
        with torch.no_grad():
            out = net(x_val).squeeze(1)
        val = criterion(out, y_val).item()
        off = (out - rate_val).abs().mean().item()
        print(f"step {step}: loss {loss.item():.1f}, validation {val:.1f}, rates off by {off:.3f}")
r2 = 1 - ((out.exp() - y_val).pow(2).mean() / y_val.var()).item()
print(f"loss {loss.item():.1f} | validation R2 {r2:.3f} log-rates off by {off:.3f}")
