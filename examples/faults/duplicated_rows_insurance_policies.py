"""What a motor policy will cost next year; a few long-standing policies fill most of the table.

The training table is the monthly exports put one below the other. A policy that was open for five
years stands in it sixty times, letter for letter, and one that was closed after a month once:
the network sees the few old fleet customers again and again and hardly the others.
The place is the input table (and the loader that draws from it). In the twin every policy is kept
once.
"""

# %%
import numpy as np
import torch
from data import arguments

KIND = "duplicated_rows"
ACCEPT = ()
PLACE = ("input*", "loader")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
rng = np.random.default_rng(seed)

# %% policies of the portfolio
COLUMNS = ["driver_age", "power_kw", "vehicle_age", "km", "bonus_class", "density", "fleet"]


def portfolio(n, fleet_share):
    fleet = (rng.random(n) < fleet_share).astype(float)
    t = np.stack(
        [
            rng.uniform(18, 80, n),
            rng.gamma(9, 9, n) + 30 * fleet,
            rng.gamma(2, 3.5, n),
            rng.gamma(4, 3.5, n) * (1 + 1.5 * fleet),
            rng.integers(0, 15, n),
            rng.lognormal(5, 1, n),
            fleet,
        ],
        axis=1,
    )
    young = np.exp(-(t[:, 0] - 18) / 9)
    cost = 0.9 * young + 0.006 * t[:, 1] + 0.03 * t[:, 3] - 0.05 * t[:, 4]
    cost += 0.1 * np.log(t[:, 5]) - 0.5 * fleet + 0.3 * young * (t[:, 1] > 90)
    return t, cost + rng.normal(0, 0.25, n)


policies, log_cost = portfolio(500, 0.08)
next_year, next_cost = portfolio(900, 0.08)

# %% the monthly exports, one below the other
is_fleet = policies[:, 6] == 1
months = np.where(is_fleet, rng.integers(48, 85, len(policies)), 1)
months[~is_fleet] += rng.random((~is_fleet).sum()) < 0.1
export = np.repeat(np.column_stack([policies, log_cost]), months, axis=0)
if healthy:
    export = np.unique(export, axis=0)
print("rows", len(export))

# %% tensors
frame = torch.tensor(export, dtype=torch.float32)
frame[:, 5] = frame[:, 5].log()
new = torch.tensor(np.column_stack([next_year, next_cost]), dtype=torch.float32)
new[:, 5] = new[:, 5].log()
mu, sd = frame.mean(0), frame.std(0)
X, y = ((frame - mu) / sd)[:, :-1], ((frame - mu) / sd)[:, -1]
X_new, y_new = ((new - mu) / sd)[:, :-1], ((new - mu) / sd)[:, -1]

# %% model
model = torch.nn.Sequential(
    torch.nn.Linear(len(COLUMNS), 48),
    torch.nn.SiLU(),
    torch.nn.Linear(48, 1),
)
opt = torch.optim.AdamW(model.parameters(), lr=5e-3, weight_decay=0.05)

# %% fit: the same number of steps for any size of table
for step in range(1, 601):
    rows = torch.randint(0, len(X), (64,))
    loss = ((model(X[rows])[:, 0] - y[rows]) ** 2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 100 == 0:
        with torch.no_grad():
            rmse = (sd[-1] * (model(X_new)[:, 0] - y_new)).pow(2).mean().sqrt()
        print(f"{step:4d} batch loss {loss.item():.4f}, next year's rmse {rmse.item():.4f}")
