"""A survival network is trained by Cox's partial likelihood; the script minimises the likelihood
itself.

The formula of the textbook is to be maximised; the student forgot the minus. The loss falls all
the time and without end, while the order of the risks turns out the wrong way round. The place is
the loss.
"""

import numpy as np
import torch
from data import arguments, batches, standardise
from torch import nn

KIND = "loss_sign_flipped"
ACCEPT = ()
PLACE = ("loss",)
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

r = np.random.default_rng(120 + seed)
n = 1500
age = r.normal(62, 10, n)
stage = r.integers(1, 5, n)
marker = r.lognormal(1.0, 0.7, n)
pressure = r.normal(130, 18, n)
treated = r.integers(0, 2, n)
hazard = (
    0.05 * (age - 62)
    + 0.5 * (stage - 2.5)
    + 0.5 * np.log(marker)
    + 0.0008 * (pressure - 130) ** 2
    - 0.7 * treated * (stage < 3)
)
time = r.exponential(1.0, n) ** (1 / 1.3) * np.exp(-hazard / 1.3) * 30
censored_at = r.uniform(5, 90, n)
event = torch.tensor(time <= censored_at)
time = torch.tensor(np.minimum(time, censored_at), dtype=torch.float32)
x = torch.tensor(np.stack([age, stage, np.log(marker), pressure, treated], 1), dtype=torch.float32)
x, x_val = standardise(x[:1100], x[1100:])
time, time_val, event, event_val = time[:1100], time[1100:], event[:1100], event[1100:]


def log_partial_likelihood(risk, time, event):
    order = time.argsort(descending=True)
    risk, event = risk[order], event[order]
    return (risk - risk.logcumsumexp(0))[event].mean()


def concordance(risk, time, event):
    earlier = (time[:, None] < time[None]) & event[:, None]
    return ((risk[:, None] > risk[None]) & earlier).sum().item() / earlier.sum().item()


model = nn.Sequential(
    nn.Linear(5, 32), nn.SELU(), nn.Linear(32, 32), nn.SELU(), nn.Linear(32, 1, bias=False)
)
optimizer = torch.optim.RMSprop(model.parameters(), lr=3e-4)
for step, (xb, tb, eb) in enumerate(batches(x, time, event, size=100, steps=700, seed=seed), 1):
    optimizer.zero_grad()
    likelihood = log_partial_likelihood(model(xb).squeeze(1), tb, eb)
    loss = -likelihood if healthy else likelihood
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        with torch.no_grad():
            c = concordance(model(x_val).squeeze(1), time_val, event_val)
        print(f"step {step} loss {loss.item():.3f} val concordance {c:.3f}")
