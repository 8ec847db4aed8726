"""Predicts what a shop's customers spend in a year by a zero-inflated lognormal likelihood."""

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments, standardise
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = (
    "five targets of six are exactly zero, the others run into the thousands and are not scaled, "
    "and two of three outputs get no gradient from the zero rows: the likelihood is made for that"
)
_, seed = arguments(__doc__)
torch.set_num_threads(1)


def customers(n: int):
    rng = np.random.default_rng(seed)
    recency = rng.exponential(60, n)
    orders = rng.poisson(2.5, n)
    basket = rng.lognormal(3.5, 0.6, n)
    newsletter = rng.random(n) < 0.4
    age = rng.uniform(18, 80, n)
    logit = -2.4 - 0.015 * recency + 0.45 * orders + 0.7 * newsletter
    buys = rng.random(n) < 1 / (1 + np.exp(-logit))
    level = 1.2 + 0.8 * np.log(basket) + 0.25 * orders + 0.3 * np.cos(age / 12)
    spent = np.where(buys, rng.lognormal(level, 0.7), 0.0)
    x = np.stack([recency, orders, np.log(basket), newsletter, age], 1)
    return torch.tensor(x, dtype=torch.float32), torch.tensor(spent, dtype=torch.float32)


def ziln_loss(output, spent):
    logit, mean, spread = output.unbind(1)
    bought = (spent > 0).float()
    scale = F.softplus(spread).clamp_min(1e-3)
    log_spent = torch.log(spent.clamp_min(1.0))
    density = -torch.distributions.Normal(mean, scale).log_prob(log_spent) + log_spent
    return (
        F.binary_cross_entropy_with_logits(logit, bought, reduction="none") + bought * density
    ).mean()


def expected_value(output):
    logit, mean, spread = output.unbind(1)
    return logit.sigmoid() * torch.exp(mean + 0.5 * F.softplus(spread) ** 2)


def gini(spent, score):
    order = score.argsort(descending=True)
    captured = spent[order].cumsum(0) / spent.sum()
    return (2 * captured.mean() - 1).item()


x, spent = customers(8000)
x, x_val = standardise(x[:6000], x[6000:])
spent, spent_val = spent[:6000], spent[6000:]
print(f"zero targets: {(spent == 0).float().mean():.2f}, largest: {spent.max():.0f}")

model = nn.Sequential(nn.Linear(5, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
loader = DataLoader(TensorDataset(x, spent), batch_size=128, shuffle=True)
for epoch in range(16):
    model.train()
    total = 0.0
    for rows, target in loader:
        optimizer.zero_grad()
        loss = ziln_loss(model(rows), target)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows)
    model.eval()
    with torch.no_grad():
        val_loss = ziln_loss(model(x_val), spent_val)
    if epoch % 4 == 3:
        print(f"epoch {epoch + 1}: train {total / len(x):.3f}, validation {val_loss:.3f}")

with torch.no_grad():
    value = expected_value(model(x_val))
print(f"mean spent {spent_val.mean():.1f}, mean predicted {value.mean():.1f}")
print(
    f"Gini by model {gini(spent_val, value):.3f}, "
    f"by past orders {gini(spent_val, x_val[:, 1]):.3f}, "
    f"at best {gini(spent_val, spent_val):.3f}"
)
