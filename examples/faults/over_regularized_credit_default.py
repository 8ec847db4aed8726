"""Estimates the probability that a loan isn't paid back; a penalty on the weights outweighs the
data.

The bank's modelling rules ask for sparse models, and the analyst took over a strength of the L1
penalty from a regression with a few coefficients. Here it is summed over thousands of weights, and
nearly all are pulled to zero.
The place is the loss with its penalty.
The twin has a penalty three thousand times weaker.
"""

import numpy as np
import torch
from data import arguments, standardise
from sklearn.metrics import roc_auc_score
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "over_regularized"
ACCEPT = ()
PLACE = ("loss*", "optimizer")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
L1_STRENGTH = 1e-5 if healthy else 3e-2


def applications(rng, n):
    income = rng.lognormal(7.8, 0.5, n)
    amount = rng.lognormal(9.0, 0.7, n)
    months = rng.choice([12, 24, 36, 48, 60], n)
    age = rng.uniform(19, 75, n)
    late = rng.poisson(0.6, n)
    years = rng.exponential(5, n)
    share = amount / months / income
    score = 5.5 * share + 0.9 * np.minimum(late, 4) - 0.13 * np.minimum(years, 10)
    score = score + 0.0012 * (age - 45) ** 2 - 2.6 + 0.8 * (late > 0) * (share > 0.2)
    default = rng.random(n) < 1 / (1 + np.exp(-score))
    columns = [np.log(income), np.log(amount), months, age, late, np.log1p(years)]
    return (
        torch.tensor(np.column_stack(columns), dtype=torch.float32),
        torch.tensor(default, dtype=torch.float32),
    )


rng = np.random.default_rng(seed)
x, y = applications(rng, 4000)
x_val, y_val = applications(rng, 1500)
x, x_val = standardise(x, x_val)

model = nn.Sequential(
    nn.Linear(6, 64),
    nn.ReLU(),
    nn.Linear(64, 32),
    nn.ReLU(),
    nn.Linear(32, 1),
)
weights = [p for name, p in model.named_parameters() if name.endswith("weight")]
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
bce = nn.BCEWithLogitsLoss()
loader = DataLoader(TensorDataset(x, y), batch_size=100, shuffle=True)

for epoch in range(1, 16):
    model.train()
    fit_sum = 0.0
    for xb, yb in loader:
        fit = bce(model(xb).squeeze(1), yb)
        penalty = sum(w.abs().sum() for w in weights)
        loss = fit + L1_STRENGTH * penalty
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        fit_sum += fit.item()
    if epoch % 3 == 0:
        model.eval()
        with torch.no_grad():
            logit = model(x_val).squeeze(1)
        auc = roc_auc_score(y_val.numpy(), logit.numpy())
        print(
            f"epoch {epoch:2d}: loss {loss.item():.4f} (fit {fit_sum / len(loader):.4f}), "
            f"val logloss {bce(logit, y_val).item():.4f}, Gini {2 * auc - 1:.3f}"
        )
