"""An MLP says which loans default, from columns in their raw units (dollars, years, shares).

The user feeds the table as it is: yearly income and loan sum in dollars (up to 200,000) beside an
interest rate of 0.1. The place is the input.
"""

import numpy as np
import torch
from data import arguments, standardise
from torch import nn

KIND = "input_not_normalized"
ACCEPT = ()
PLACE = ("input*",)
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


def loans(n, r):
    income = r.lognormal(10.9, 0.45, n)
    amount = income * r.uniform(0.1, 1.2, n)
    age = r.uniform(21, 70, n)
    rate = r.uniform(0.03, 0.18, n)
    late = r.poisson(0.7, n)
    use = r.beta(2, 3, n)
    score = 2.6 * (amount / income - 0.6) + 14 * (rate - 0.1) + 0.8 * (late - 0.7)
    score = score + 2.5 * (use - 0.4) - 0.02 * (age - 45) + 1.2 * (late > 0) * (use > 0.5)
    y = r.random(n) < 1 / (1 + np.exp(-1.6 * score))
    x = np.stack([income, amount, age, rate, late, use], 1)
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)


def evaluate(model, loss_of, x, y):
    model.eval()
    with torch.no_grad():
        logit = model(x).squeeze(1)
        return loss_of(logit, y).item(), ((logit > 0) == (y > 0.5)).float().mean().item()


x, y = loans(4000, np.random.default_rng(seed))
x, x_val, y, y_val = x[:3000], x[3000:], y[:3000], y[3000:]
if healthy:
    x, x_val = standardise(x, x_val)
model = nn.Sequential(nn.Linear(6, 48), nn.ReLU(), nn.Linear(48, 24), nn.ReLU(), nn.Linear(24, 1))
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
loss_of = nn.BCEWithLogitsLoss()
for epoch in range(12):
    model.train()
    order = torch.randperm(len(x))
    for i in range(0, len(x), 60):
        rows = order[i : i + 60]
        optimizer.zero_grad()
        loss = loss_of(model(x[rows]).squeeze(1), y[rows])
        loss.backward()
        optimizer.step()
    val_loss, accuracy = evaluate(model, loss_of, x_val, y_val)
    print(f"{epoch}: train {loss.item():.3f}, val loss {val_loss:.3f}, val accuracy {accuracy:.3f}")
