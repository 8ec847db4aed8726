"""Learns from records of care, without a trial, what a treatment does, with a three-headed net."""

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments, standardise
from torch import nn

ODD = (
    "each patient has one of two outcomes, so half the outputs of each head get no gradient, and "
    "the treatment head is meant to stay near chance: it only finds what decides on treatment"
)
_, seed = arguments(__doc__)
torch.set_num_threads(1)


def patients(n: int):
    rng = np.random.default_rng(seed + 100)
    x = rng.normal(size=(n, 8))
    propensity = 1 / (1 + np.exp(-(0.9 * x[:, 0] - 0.7 * x[:, 1])))
    treated = (rng.random(n) < propensity).astype(float)
    effect = 1.0 + 0.8 * np.tanh(2 * x[:, 2]) + 0.4 * x[:, 0]
    base = 1.5 * x[:, 0] - x[:, 1] + np.sin(2 * x[:, 3]) + 0.5 * x[:, 4] * x[:, 5]
    outcome = base + effect * treated + rng.normal(0, 0.5, n)
    return tuple(torch.tensor(part, dtype=torch.float32) for part in (x, treated, outcome, effect))


class DragonNet(nn.Module):
    def __init__(self, columns: int, width: int = 64):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(columns, width), nn.ELU(), nn.Linear(width, width), nn.ELU()
        )
        self.untreated = nn.Sequential(nn.Linear(width, 32), nn.ELU(), nn.Linear(32, 1))
        self.treated = nn.Sequential(nn.Linear(width, 32), nn.ELU(), nn.Linear(32, 1))
        self.propensity = nn.Linear(width, 1)

    def forward(self, x):
        shared = self.body(x)
        heads = (self.untreated, self.treated, self.propensity)
        return tuple(head(shared).squeeze(1) for head in heads)


def losses(model, x, treated, outcome):
    y0, y1, logit = model(x)
    factual = torch.where(treated == 1, y1, y0)
    return F.mse_loss(factual, outcome), F.binary_cross_entropy_with_logits(logit, treated)


x, treated, outcome, effect = patients(6000)
x, x_val = standardise(x[:4500], x[4500:])
mean, spread = outcome[:4500].mean(), outcome[:4500].std()
outcome = (outcome - mean) / spread
treated, treated_val = treated[:4500], treated[4500:]
outcome, outcome_val, effect_val = outcome[:4500], outcome[4500:], effect[4500:]

model = DragonNet(8)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-2)
for epoch in range(20):
    model.train()
    for rows in torch.randperm(len(x)).split(64):
        optimizer.zero_grad()
        outcome_loss, treatment_loss = losses(model, x[rows], treated[rows], outcome[rows])
        (outcome_loss + 0.2 * treatment_loss).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        outcome_loss, treatment_loss = losses(model, x_val, treated_val, outcome_val)
    if epoch % 5 == 4:
        print(
            f"epoch {epoch + 1}: validation outcome {outcome_loss:.4f}, "
            f"treatment {treatment_loss:.4f}"
        )

with torch.no_grad():
    y0, y1, _ = model(x_val)
uplift = (y1 - y0) * spread
raw_outcome = outcome_val * spread + mean
naive = raw_outcome[treated_val == 1].mean() - raw_outcome[treated_val == 0].mean()
pehe = F.mse_loss(uplift, effect_val).sqrt()
print(
    f"average effect: true {effect_val.mean():.2f}, model {uplift.mean():.2f}, "
    f"difference of means {naive:.2f}"
)
print(f"error of single effects {pehe:.3f}, with one effect for all {effect_val.std():.3f}")
