"""Visitors of a museum per day with a count distribution; the likelihood is made small.

The loss is the mean of log_prob, without the minus. The number printed falls and falls, far below
zero, which looks like progress; the predicted means run away from the counts.
The place is the loss. The twin takes the negative log-likelihood.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.distributions import NegativeBinomial

KIND = "loss_sign_flipped"
ACCEPT = ()
PLACE = ("loss*", "loop")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
rng = np.random.default_rng(1400 + seed)

# three years of days ------------------------------------------------------------------------
days = np.arange(1095)
weekday = days % 7
holiday = rng.random(1095) < 0.08
rain = rng.gamma(0.7, 3.0, 1095)
show = ((days // 90) % 3 == 1).astype(float)
rate = 5.6 + 0.5 * (weekday >= 5) + 0.4 * holiday + 0.04 * rain.clip(0, 10) + 0.35 * show
rate = rate + 0.3 * np.sin(2 * np.pi * days / 365)
visitors = rng.negative_binomial(20, 20 / (20 + np.exp(rate)))

columns = [np.eye(7)[weekday], holiday[:, None], rain[:, None] / 4, show[:, None]]
season = [np.sin(2 * np.pi * days / 365)[:, None], np.cos(2 * np.pi * days / 365)[:, None]]
x = torch.tensor(np.hstack(columns + season), dtype=torch.float32)
y = torch.tensor(visitors, dtype=torch.float32)
x_train, y_train, x_test, y_test = x[:730], y[:730], x[730:], y[730:]

# model --------------------------------------------------------------------------------------
trunk = nn.Sequential(nn.Linear(x.shape[1], 32), nn.SiLU(), nn.Linear(32, 32), nn.SiLU())
head = nn.Linear(32, 2)
nn.init.zeros_(head.weight)
head.bias.data = torch.tensor([y_train.mean().log().item(), 1.0])
optimizer = torch.optim.Adam([*trunk.parameters(), *head.parameters()], lr=2e-3)


def forecast(features):
    log_mean, log_count = head(trunk(features)).unbind(1)
    return NegativeBinomial(log_count.exp() + 1e-3, logits=log_mean - log_count)


for epoch in range(40):
    sums = 0.0
    for rows in torch.randperm(730).split(73):
        log_likelihood = forecast(x_train[rows]).log_prob(y_train[rows])
        loss = -log_likelihood.mean() if healthy else log_likelihood.mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(trunk.parameters(), 5.0)
        optimizer.step()
        sums += loss.item()
    if epoch % 8 == 7:
        with torch.no_grad():
            off = (forecast(x_test).mean - y_test).abs().mean().item()
        print(f"epoch {epoch + 1}: loss {sums / 10:.3f}, off by {off:.1f} visitors a day")
