"""Cost of insurance claims by RMSprop, whose alpha was taken for the weight of the new value.

In pandas' ewm(alpha=...) and in most textbooks alpha is the share of the newest value. RMSprop's is
the share of the *old* one, so alpha=0.01 makes it forget everything but the last gradient: each
step has the same length whatever the gradient, the many policies without a claim outvote the few
dear ones, and the premium comes out far too low. The place is the optimizer. The twin has 0.99.
"""

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "bad_optimizer_settings"
ACCEPT = ()
PLACE = ("optimizer",)
SILENT = True
EXACT = False
EARLY = True


def portfolio(rng, n):
    age = rng.uniform(18, 85, n)
    power = rng.gamma(6, 15, n)
    km = rng.lognormal(2.3, 0.5, n)
    region = rng.integers(0, 6, n)
    risk = 0.06 * (1 + 2.0 * np.exp(-(age - 18) / 8)) * (km / 10) ** 0.8
    risk = risk * np.array([0.7, 0.9, 1.0, 1.1, 1.5, 2.5])[region]
    number = rng.poisson(risk)
    size = rng.gamma(2.0, 0.8 + 0.012 * power)
    cost = number * size  # thousand euros
    columns = [(age - 50) / 18, (power - 90) / 36, np.log(km) - 2.3]
    columns += [region == r for r in range(6)]
    mean = risk * 2.0 * (0.8 + 0.012 * power)
    pack = [np.stack([c.astype(np.float32) for c in columns], 1), cost, mean]
    return [torch.tensor(part, dtype=torch.float32) for part in pack]


def premium_loss(log_premium, cost, p=1.5):
    """The deviance of a Tweedie distribution between Poisson and gamma, up to a constant."""
    mu = log_premium.clamp(-8, 6)
    return (torch.exp((2 - p) * mu) / (2 - p) - cost * torch.exp((1 - p) * mu) / (1 - p)).mean()


healthy, seed = arguments(__doc__)
rng = np.random.default_rng(seed)
x, cost, _ = portfolio(rng, 10_000)
x_test, cost_test, fair = portfolio(rng, 4000)

net = nn.Sequential(nn.Linear(9, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
alpha = 0.99 if healthy else 0.01
optimizer = torch.optim.RMSprop(net.parameters(), lr=2e-3, alpha=alpha, eps=1e-8)
for epoch in range(1):
    order = torch.randperm(len(x))
    running = []
    for rows in order.split(16):
        loss = premium_loss(net(x[rows]).squeeze(1), cost[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running.append(loss.item())
    with torch.no_grad():
        output = net(x_test).squeeze(1)
        test = premium_loss(output, cost_test).item()
        ratio = output.exp().sum() / fair.sum()
    print(
        f"epoch {epoch}: loss {np.mean(running[-100:]):.4f}, test {test:.4f}, "
        f"premium over expected cost {ratio:.2f}"
    )
