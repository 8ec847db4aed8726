"""Insurance claims by a Poisson regression on plain tensors, with a column of ones in the design
matrix.

It looks odd: there's no module at all, one input column is constant, nine in ten targets are
zero, and the loss stands near its floor soon. It is sound: the column of ones is the intercept
(the weight vector has no other), the exposure enters as an offset, and the deviance explained is
what such data allow.
"""

import numpy as np
import torch
from data import arguments

ODD = (
    "Insurance claims by a Poisson regression on plain tensors, with a column of ones in the "
    "design matrix"
)
_, seed = arguments(__doc__)
rng = np.random.default_rng(seed + 12)

N = 12_000
age = rng.uniform(18, 85, N)
power = rng.integers(4, 13, N)
density = rng.lognormal(5.5, 1.4, N)
bonus = np.clip(50 + rng.gamma(1, 14, N), 50, 150)
area = rng.integers(0, 6, N)
exposure = rng.uniform(0.1, 1.0, N)
area_effect = np.array([-0.2, 0.0, 0.1, 0.15, 0.4, 0.6])
eta = -2.3 + 0.9 * np.exp(-(age - 18) / 8) + 0.05 * (power - 7) + 0.18 * (np.log(density) - 5.5)
eta += 0.03 * (bonus - 60) + area_effect[area]
claims = rng.poisson(exposure * np.exp(eta))

numeric = np.stack([age, age**2, np.exp(-(age - 18) / 10), power, np.log(density), bonus], 1)
numeric = (numeric - numeric[:9000].mean(0)) / numeric[:9000].std(0)
design = np.concatenate([np.ones((N, 1)), numeric, np.eye(6)[area][:, 1:]], 1)

X = torch.tensor(design, dtype=torch.float32)
t = torch.tensor(claims, dtype=torch.float32)
offset = torch.tensor(np.log(exposure), dtype=torch.float32)
train, val = slice(0, 9000), slice(9000, N)

w = torch.zeros(X.shape[1], requires_grad=True)
optimizer = torch.optim.Adam([w], lr=0.02)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 500, 0.4)
RIDGE = 1e-4


def poisson_loss(rows):
    log_rate = X[rows] @ w + offset[rows]
    return (log_rate.exp() - t[rows] * log_rate).mean()


def deviance(mu, t):
    return 2 * (torch.xlogy(t, t / mu) - (t - mu)).mean()


for step in range(1, 2001):
    idx = torch.randint(0, 9000, (512,))
    loss = poisson_loss(idx) + RIDGE * w[1:].square().sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    if step % 200 == 0:
        with torch.no_grad():
            mu = (X[val] @ w + offset[val]).exp()
            base = t[train].sum() / offset[train].exp().sum() * offset[val].exp()
            d2 = 1 - deviance(mu, t[val]) / deviance(base, t[val])
            print(
                f"step {step} loss {loss.item():.4f} val loss {poisson_loss(val).item():.4f} val D2 {d2.item():.4f} claims/expected {(t[val].sum() / mu.sum()).item():.3f}"  # noqa: E501
            )
