"""A survival net (Cox) gives back the partial log-likelihood, and the optimizer makes it small.

The minus is missing. Who dies early gets the lowest risk, and the likelihood falls without end.
The place is the loss. It falls all the same (silent), below every bound; the concordance goes
under one half. Exact or near it: a likelihood that is minimised.
"""

import numpy as np
import torch
from data import arguments, standardise
from torch import nn

KIND = "loss_sign_flipped"
ACCEPT = ()
PLACE = ("loss*", "loop", "")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


def study(n, rng):
    age = rng.normal(60, 10, n)
    marker = rng.lognormal(0, 0.6, n)
    stage = rng.integers(1, 5, n).astype(float)
    treated = rng.integers(0, 2, n).astype(float)
    others = rng.normal(size=(n, 4))
    log_hazard = 0.04 * (age - 60) + 0.8 * np.log(marker) ** 2 + 0.5 * (stage - 2.5) - 0.9 * treated
    death = rng.exponential(np.exp(-log_hazard))
    leaves = rng.exponential(2.0, n)
    x = np.column_stack([age, np.log(marker), stage, treated, others])
    time, event = np.minimum(death, leaves), death <= leaves
    return (torch.tensor(part, dtype=torch.float32) for part in (x, time, event))


def cox_partial_likelihood(risk, time, event):
    """Breslow's; the rows sorted so that the risk set of each is what comes before it."""
    order = torch.argsort(time, descending=True)
    risk, event = risk[order], event[order]
    log_sum = torch.logcumsumexp(risk, 0)
    likelihood = ((risk - log_sum) * event).sum() / event.sum().clamp(min=1)
    return -likelihood if healthy else likelihood


def concordance(risk, time, event):
    earlier = (time[:, None] < time[None]) & (event[:, None] > 0)
    return (risk[:, None] > risk[None])[earlier].float().mean().item()


class DeepSurv(nn.Module):
    def __init__(self, n_in):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(n_in, 32), nn.SELU(), nn.Linear(32, 32), nn.SELU(), nn.Linear(32, 1)
        )

    def forward(self, x):
        return self.net(x).squeeze(1)


rng = np.random.default_rng(seed)
x, time, event = study(1500, rng)
x_val, time_val, event_val = study(500, rng)
x, x_val = standardise(x, x_val)
model = DeepSurv(x.shape[1])
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, weight_decay=1e-4)
for epoch in range(20):
    model.train()
    for rows in torch.randperm(len(x)).split(128):
        loss = cox_partial_likelihood(model(x[rows]), time[rows], event[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 4 == 3:
        model.eval()
        with torch.no_grad():
            c = concordance(model(x_val), time_val, event_val)
        print(f"epoch {epoch}: loss {loss.item():.3f}, held-out concordance {c:.3f}")
