"""How many claims a household policy has in a year: a Poisson network with exposure.

Nine policies in ten have no claim at all. The loss can hardly fall below where a constant rate gets
it, for most of what is left is chance; what counts is the order of the policies (Gini) and that the
sum of the forecasts is the sum of the claims.
"""

# %%
import numpy as np
import torch
from data import arguments
from torch import nn

ODD = "nine targets in ten are zero and the loss falls by a few per cent only: the rest is chance"

_, seed = arguments(__doc__)
rng = np.random.default_rng(seed)

# %% the book of policies
n = 12000
area = rng.gamma(6, 18, n)
floor = rng.integers(0, 6, n)
age = rng.uniform(0, 90, n)
basement = rng.random(n) < 0.4
river = rng.exponential(4, n)
before = rng.poisson(0.15, n)
exposure = np.where(rng.random(n) < 0.7, 1.0, rng.uniform(0.1, 1.0, n))
log_rate = -2.9 + 0.006 * (area - 108) + 0.9 * before + 0.008 * age
log_rate += 1.2 * basement * np.exp(-river / 2) - 0.1 * floor
claims = rng.poisson(exposure * np.exp(log_rate))
print(f"policies without a claim: {(claims == 0).mean():.1%}")

A = np.column_stack([np.log(area), floor, age, basement, np.log1p(river), before])
cut = 9000
A = (A - A[:cut].mean(0)) / A[:cut].std(0)
X = torch.tensor(A, dtype=torch.float32)
offset = torch.tensor(np.log(exposure), dtype=torch.float32)
y = torch.tensor(claims, dtype=torch.float32)

# %% the network starts at the mean frequency of the book
net = nn.Sequential(nn.Linear(6, 24), nn.SiLU(), nn.Linear(24, 24), nn.SiLU(), nn.Linear(24, 1))
with torch.no_grad():
    net[-1].weight.mul_(0.1)
    net[-1].bias.fill_(float(np.log(claims[:cut].sum() / exposure[:cut].sum())))
criterion = nn.PoissonNLLLoss(log_input=True, full=True)
optimizer = torch.optim.AdamW(net.parameters(), lr=2e-3, weight_decay=1e-2)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 8)


def gini(score, seen):
    order = np.argsort(score)
    share = np.cumsum(seen[order]) / seen.sum()
    return 1 - 2 * share.mean()


# %%
for epoch in range(8):
    net.train()
    total = 0.0
    batches = torch.randperm(cut).split(128)
    for rows in batches:
        optimizer.zero_grad()
        loss = criterion(net(X[rows]).squeeze(1) + offset[rows], y[rows])
        loss.backward()
        optimizer.step()
        total += loss.item()
    scheduler.step()
    net.eval()
    with torch.no_grad():
        log_mean = net(X[cut:]).squeeze(1) + offset[cut:]
        val = criterion(log_mean, y[cut:]).item()
    forecast = log_mean.exp().numpy()
    ratio = forecast.sum() / claims[cut:].sum()
    print(
        f"epoch {epoch + 1}: train {total / len(batches):.4f} val {val:.4f} "
        f"gini {gini(forecast, claims[cut:]):.3f} forecast/seen {ratio:.3f}"
    )
