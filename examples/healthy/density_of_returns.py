"""A mixture density network gives the next day's return distribution of a share; its loss is
negative and goes on falling below zero, which is sound.

The loss is the negative log of a density in the units of daily returns (a spread of one per
cent), so densities lie far above 1. The rate is warmed up from nearly nothing.
"""

import math

import torch
from data import arguments
from torch import nn

ODD = "a loss that is negative, and goes on falling below zero, as densities above 1 have it"

_, seed = arguments(__doc__)

LAGS, COMPONENTS, STEPS, BATCH = 10, 3, 900, 128


def share(days, g):
    """GARCH with jumps after calm spells."""
    r, var = torch.zeros(days), torch.tensor(1e-4)
    z, u = torch.randn(days, generator=g), torch.rand(days, generator=g)
    for t in range(1, days):
        var = 3e-6 + 0.12 * r[t - 1] ** 2 + 0.85 * var
        jump = 0.02 * (1 if u[t] < 0.02 else 0)
        r[t] = 0.1 * r[t - 1] + var.sqrt() * z[t] - jump
    return r


class MDN(nn.Module):
    def __init__(self, lags, k, width=48):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(2 * lags, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU()
        )  # noqa: E501, RUF100
        self.pi, self.mu, self.log_sigma = (
            nn.Linear(width, k),
            nn.Linear(width, k),
            nn.Linear(width, k),
        )  # noqa: E501, RUF100
        nn.init.constant_(self.log_sigma.bias, math.log(0.012))

    def forward(self, lagged):
        scaled = lagged / 0.012
        h = self.body(torch.cat([scaled, (scaled.abs() + 0.1).log()], 1))
        return self.pi(h).log_softmax(1), 0.01 * self.mu(h), self.log_sigma(h).clamp(-8, 0)

    def nll(self, lagged, r):
        log_pi, mu, log_sigma = self(lagged)
        normal = (
            -0.5 * ((r.unsqueeze(1) - mu) / log_sigma.exp()) ** 2
            - log_sigma
            - 0.5 * math.log(2 * math.pi)
        )  # noqa: E501, RUF100
        return -(log_pi + normal).logsumexp(1).mean()


g = torch.Generator().manual_seed(seed)
series = [share(1500, g).unfold(0, LAGS + 1, 1) for _ in range(8)]
train, val = torch.cat(series[:6]), torch.cat(series[6:])
model = MDN(LAGS, COMPONENTS)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-2)
scheduler = torch.optim.lr_scheduler.SequentialLR(
    optimizer,
    [
        torch.optim.lr_scheduler.LinearLR(optimizer, 1e-3, 1.0, 100),
        torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS - 100),
    ],  # noqa: E501, RUF100
    milestones=[100],
)
spread = train[:, -1].std()
unconditional = (
    0.5 * math.log(2 * math.pi)
    + spread.log().item()
    + 0.5 * (val[:, -1] ** 2).mean().item() / spread.item() ** 2
)  # noqa: E501, RUF100
for step in range(1, STEPS + 1):
    rows = train[torch.randint(0, len(train), (BATCH,), generator=g)]
    loss = model.nll(rows[:, :-1], rows[:, -1])
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    optimizer.step()
    scheduler.step()
    if step % 150 == 0:
        with torch.no_grad():
            print(
                f"step {step} loss {loss.item():.4f} val NLL {model.nll(val[:, :-1], val[:, -1]).item():.4f} (one normal for all days: {unconditional:.4f})"  # noqa: E501
            )  # noqa: E501, RUF100
