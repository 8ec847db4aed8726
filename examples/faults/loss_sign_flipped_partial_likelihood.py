"""Survival of patients by a Cox net; the helper that gave the negative likelihood was refactored.

`cox_nll` became `cox_log_likelihood`, for a paper's table, and its minus was to move to the
caller. The training loop maximises the risk of those who live longest: the concordance falls below
one half. The place is the loss. The twin's loop has the minus.
"""

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "loss_sign_flipped"
ACCEPT = ()
PLACE = ("loss",)
SILENT = False
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)


def cohort(n, rng):
    x = rng.normal(0, 1, (n, 10))
    x[:, 3] = rng.random(n) < 0.4
    risk = 0.9 * x[:, 0] - 0.6 * x[:, 1] + 1.0 * x[:, 3] * x[:, 2] + 0.5 * np.abs(x[:, 4])
    death = rng.exponential(np.exp(-risk)) ** 0.8
    censored = rng.exponential(2.0, n)
    time, event = np.minimum(death, censored), death <= censored
    return tuple(torch.tensor(a, dtype=torch.float32) for a in (x, time, event))


class RiskNet(nn.Module):
    def __init__(self, n_in):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(n_in, 32), nn.SELU(), nn.AlphaDropout(0.05), nn.Linear(32, 16), nn.SELU()
        )
        self.risk = nn.Linear(16, 1, bias=False)

    def forward(self, x):
        return self.risk(self.body(x)).squeeze(1)


def cox_log_likelihood(risk, time, event):
    """Breslow's partial log-likelihood per event."""
    order = torch.argsort(time, descending=True)
    risk, event = risk[order], event[order]
    at_risk = torch.logcumsumexp(risk, dim=0)
    return ((risk - at_risk) * event).sum() / event.sum().clamp(min=1)


def concordance(risk, time, event):
    earlier = (time[:, None] < time[None, :]) & (event[:, None] > 0)
    right = (risk[:, None] > risk[None, :]) & earlier
    return right.sum().item() / earlier.sum().item()


rng = np.random.default_rng(seed)
x, time, event = cohort(1600, rng)
x_val, time_val, event_val = cohort(500, rng)
model = RiskNet(10)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, weight_decay=1e-4)

for epoch in range(20):
    model.train()
    losses = []
    for rows in torch.randperm(len(x)).split(100):
        log_likelihood = cox_log_likelihood(model(x[rows]), time[rows], event[rows])
        loss = -log_likelihood if healthy else log_likelihood
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        c_index = concordance(model(x_val), time_val, event_val)
    if epoch % 2:
        print(f"epoch {epoch + 1:2d} loss {np.mean(losses):.3f} val C-index {c_index:.3f}")
